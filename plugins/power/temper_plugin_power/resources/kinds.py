"""The schemas of WorkloadProfile, NodeTwin and NodeHardware: docs/power.md describes them."""

from temper_plugin_power.classifier.hints import CLASSES, CPU_SENSITIVITIES, GPU_SENSITIVITIES
from temper_plugin_power.resources.schemas import (
    AMOUNT,
    CAP_PERCENT,
    CAP_WATTS,
    COUNT,
    FLAG,
    MOMENT,
    NUMBER,
    PERCENT,
    SHARE,
    TEXT,
    Schema,
    many,
    one_of,
    table,
)
from temper_plugin_power.workloads.energy import Dialect

WORKLOAD_REF = table(("kind", "name"), kind=TEXT, namespace=TEXT, name=TEXT)

_EVIDENCE = table(
    pods=COUNT,
    windowSeconds=COUNT,
    memoryPressurePct=PERCENT,
    ipc=AMOUNT,
    llcMpki=AMOUNT,
    runQueueWaitPct=PERCENT,
    threads=AMOUNT,
    busiestThreadPct=PERCENT,
    packageWatts=AMOUNT,
    threadProfile=TEXT,
    traits=many(TEXT),
    dialect=one_of(*Dialect),
    energyBound=one_of("compute", "memory", "none", "unknown"),
)

WORKLOAD_PROFILE: Schema = table(
    spec=table(nodeName=TEXT, workloadRef=WORKLOAD_REF),
    status=table(
        criticality=table(**{"class": one_of(*CLASSES)}),
        migratability=table(reschedulable=FLAG),
        cpu=table(
            intensity=one_of("high", "medium", "low"),
            bound=one_of("compute", "memory", "io", "mixed"),
            avgUtilizationPct=NUMBER,
            capSensitivity=one_of(*CPU_SENSITIVITIES),
        ),
        gpu=table(
            intensity=one_of("high", "medium", "low", "none"),
            bound=one_of("compute", "memory", "mixed", "none"),
            avgUtilizationPct=NUMBER,
            capSensitivity=one_of(*GPU_SENSITIVITIES),
        ),
        rescheduleRecommended=FLAG,
        rescheduleReason=TEXT,
        classificationReason=TEXT,
        confidence=SHARE,
        lastUpdated=MOMENT,
        hints=many(TEXT),
        evidence=_EVIDENCE,
    ),
)

_CONTROL = table(
    backend=one_of("rapl", "host-nvidia", "host-amd", "none"),
    result=one_of("applied", "blocked", "error", "none"),
    message=TEXT,
    updatedAt=MOMENT,
)

NODE_TWIN: Schema = table(
    spec=table(
        ("nodeName", "profile"),
        nodeName=TEXT,
        profile=one_of("performance", "eco"),
        cpu=table(packagePowerCapWatts=CAP_WATTS, packagePowerCapPctOfMax=CAP_PERCENT),
        gpu=table(
            powerCap=table(
                scope=one_of("perGpu"), capWattsPerGpu=CAP_WATTS, capPctOfMax=CAP_PERCENT
            )
        ),
        policy=table(name=TEXT),
        scheduling=table(draining=FLAG, reschedulablePressure=one_of("low", "medium", "high")),
    ),
    status=table(
        schedulableClass=one_of("eco", "performance", "draining", "unknown"),
        predictedPowerHeadroomScore=PERCENT,
        predictedCoolingStressScore=PERCENT,
        predictedPsuStressScore=PERCENT,
        effectiveCapState=table(cpuPct=PERCENT, gpuPct=PERCENT),
        hardwareDensityScore=PERCENT,
        estimatedPUE=AMOUNT,
        measuredPUE=AMOUNT,
        rescheduleRecommendations=many(table(workloadRef=WORKLOAD_REF, reason=TEXT)),
        gpuSlicingRecommendation=table(
            mode=TEXT,
            sliceType=TEXT,
            slicesPerGPU=COUNT,
            totalSlices=COUNT,
            reason=TEXT,
            estimatedUtilizationGain=NUMBER,
            confidence=SHARE,
        ),
        controlStatus=table(cpu=_CONTROL, gpu=_CONTROL),
        lastUpdated=MOMENT,
    ),
)

_EXACTNESS = one_of("exact", "proxy", "generic")

NODE_HARDWARE: Schema = table(
    spec=table(nodeName=TEXT),
    status=table(
        cpu=table(
            rawModel=TEXT,
            model=TEXT,
            vendor=TEXT,
            sockets=COUNT,
            totalCores=COUNT,
            coresPerSocket=COUNT,
            driverFamily=TEXT,
            capRange=table(type=TEXT, minWattsPerSocket=AMOUNT, maxWattsPerSocket=AMOUNT),
            landmarks=table(
                minFreqMHz=AMOUNT,
                nominalFreqMHz=AMOUNT,
                maxBoostMHz=AMOUNT,
                lowestNonlinearFreqMHz=AMOUNT,
            ),
            controlAvailable=FLAG,
            telemetryAvailable=FLAG,
            warnings=many(TEXT),
        ),
        gpu=table(
            present=FLAG,
            rawModel=TEXT,
            model=TEXT,
            vendor=TEXT,
            count=COUNT,
            capRangePerGpu=table(minWatts=AMOUNT, maxWatts=AMOUNT, defaultWatts=AMOUNT),
            currentCapWatts=AMOUNT,
            slicing=table(supported=FLAG, modes=many(TEXT)),
            controlAvailable=FLAG,
            telemetryAvailable=FLAG,
            warnings=many(TEXT),
        ),
        memory=table(totalBytes=COUNT),
        network=table(linkClass=TEXT),
        inventoryResolution=table(
            hardwareCatalogKey=table(cpu=TEXT, gpu=TEXT),
            exactness=table(cpu=_EXACTNESS, gpu=_EXACTNESS),
        ),
        capabilities=table(
            cpuControl=FLAG,
            gpuControl=FLAG,
            cpuTelemetry=FLAG,
            gpuTelemetry=FLAG,
        ),
        quality=table(overall=one_of("exact", "heuristic", "unavailable"), warnings=many(TEXT)),
        updatedAt=MOMENT,
    ),
)
