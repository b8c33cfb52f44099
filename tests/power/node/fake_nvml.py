"""Functions of pynvml on made GPUs. A test compares their names and parameters with pynvml's."""


class NVMLError(Exception):
    """What every function raises."""


class FakeGpu:
    """A GPU, in watts."""

    def __init__(self, number, limit=350, least=200, most=350):
        self.uuid = f"GPU-{number}"
        self.limit_mw, self.least_mw, self.most_mw = limit * 1000, least * 1000, most * 1000
        self.has_limits = True


class FakeNvml:
    """The library on *gpus*. *refuses* is what a setter raises."""

    NVMLError = NVMLError

    def __init__(self, *gpus):
        self.gpus = gpus
        self.refuses = ""
        self.is_open = False
        self.before_set = lambda: None

    def limits(self):
        return [gpu.limit_mw / 1000 for gpu in self.gpus]

    def nvmlInit(self):  # noqa: N802 - the names of pynvml
        self.is_open = True

    def nvmlShutdown(self):  # noqa: N802
        self.is_open = False

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle):  # noqa: N802
        return handle.uuid

    def nvmlDeviceGetPowerManagementLimit(self, handle):  # noqa: N802
        return handle.limit_mw

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle):  # noqa: N802
        if not handle.has_limits:
            raise NVMLError("Not Supported")
        return [handle.least_mw, handle.most_mw]

    def nvmlDeviceSetPowerManagementLimit(self, handle, limit):  # noqa: N802
        self.before_set()
        if self.refuses:
            raise NVMLError(self.refuses)
        handle.limit_mw = limit
