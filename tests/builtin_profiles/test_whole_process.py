"""One group for all threads of a program, and names that tell no pool apart."""

from temper_core import Treatment, parse_profile
from temper_plugin_trainer.coverage import judge
from tests.builtin_profiles.recorded import RECORDINGS, ROOT

README = (ROOT / "plugins/builtin_profiles/README.md").read_text()


def test_the_example_for_go_takes_every_thread_of_the_recorded_service():
    [text] = [part.partition("```")[0] for part in README.split("```toml\n")[1:]]
    profile = parse_profile(text, "README.md")

    coverage = judge(profile, RECORDINGS["go-1.26.8"], is_static=True)

    assert not profile.enabled
    assert {each.group.treatment for each in coverage.judged} == {Treatment.LATENCY}


def test_elasticsearchs_pools_have_one_name_once_it_is_cut():
    threads = RECORDINGS["elasticsearch-8.19.21"].threads
    pools = [each for each in threads if each.comm.startswith("elasticsearch[")]

    busy = {each.comm for each in pools if each.cpu_share > 0.001}

    assert len(pools) > 20
    assert len(busy) == 1
