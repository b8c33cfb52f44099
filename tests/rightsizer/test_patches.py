"""Reports as strategic-merge patches."""

import yaml
from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from temper_core.quantities import memory_bytes
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.changes import as_quantity
from temper_plugin_rightsizer.commands.patches import as_patches

MIB = 1024 * 1024
NOW = Resources(500, 1000, 256 * MIB, 512 * MIB)
WANTED = Resources(1010, 1500, 300 * MIB, 512 * MIB)


def row(owner="Deployment/web", container="app", current=NOW, recommended=WANTED, **more):
    return {
        "namespace": "shop",
        "pod": "web-1",
        "owner": owner,
        "container": container,
        "current": asdict(current),
        "recommended": asdict(recommended),
        "keeps": current == recommended,
        "reasons": ["1 hot thread uses 1.01 CPUs"],
        **more,
    }


def patches_of(*rows):
    return list(yaml.safe_load_all(as_patches({"containers": list(rows)})))


def test_a_workload_has_one_patch_with_what_changes():
    (patch,) = patches_of(row(), row(container="side"), row(container="kept", recommended=NOW))

    assert (patch["apiVersion"], patch["kind"]) == ("apps/v1", "Deployment")
    assert patch["metadata"] == {"name": "web", "namespace": "shop"}
    app, side = patch["spec"]["template"]["spec"]["containers"]
    assert side["name"] == "side"
    assert app == {
        "name": "app",
        "resources": {"requests": {"cpu": "1010m", "memory": "300Mi"}, "limits": {"cpu": "1500m"}},
    }


def test_a_cron_job_is_patched_in_the_template_of_its_jobs():
    (patch,) = patches_of(row("CronJob/report"))

    assert patch["apiVersion"] == "batch/v1"
    template = patch["spec"]["jobTemplate"]["spec"]["template"]
    assert template["spec"]["containers"][0]["name"] == "app"


def test_what_has_no_template_that_may_change_is_named_with_the_reason():
    text = as_patches({"containers": [row("ReplicaSet/web-7c9"), row("Job/once"), row("")]})

    assert list(yaml.safe_load_all(text)) == []
    assert "# shop/ReplicaSet/web-7c9/web-1, container app: its Deployment is not known" in text
    assert "# shop/Job/once/web-1, container app: the template of a Job cannot change" in text
    assert "# shop/web-1, container app: only workloads with a template are patched" in text


def test_init_containers_and_sidecars_are_patched_in_their_own_list():
    (patch,) = patches_of(
        row(),
        row(container="proxy", container_kind="sidecar"),
        row("Deployment/web", "setup", container_kind="init"),
    )

    spec = patch["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["containers"]] == ["app"]
    assert [each["name"] for each in spec["initContainers"]] == ["proxy", "setup"]


def test_a_workload_that_a_vpa_sizes_has_no_patch():
    text = as_patches({"containers": [row(managed_by="the VPA web (mode Auto)")]})

    assert list(yaml.safe_load_all(text)) == []
    assert "container app: the VPA web (mode Auto) sets the requests" in text


def test_without_a_change_there_is_a_comment():
    assert as_patches({"containers": [row(recommended=NOW)]}) == "# no workload should change"


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_text_from_outside_leaves_its_place(name, reason):
    (patch,) = patches_of(row(f"Deployment/{name}", container=name, reasons=[reason]))

    assert patch["metadata"] == {"name": name, "namespace": "shop"}
    assert patch.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert [each["name"] for each in patch["spec"]["template"]["spec"]["containers"]] == [name]


@given(st.integers(1, 2**50))
def test_a_quantity_of_memory_is_the_same_number_of_bytes(size):
    assert memory_bytes(as_quantity(size)) == size
