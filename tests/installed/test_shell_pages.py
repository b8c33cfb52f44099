"""Man pages and completion files, as packages of a distribution ship them."""

import shutil
import subprocess
import sys

import pytest

from temper_core.cli.main import CORE_COMMANDS


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    for kind in ("man", "completions"):
        command = [sys.executable, "-W", "ignore", "-m", "deploy.shell_pages", kind, str(folder)]
        subprocess.run(command, check=True)
    return folder


def test_every_command_of_core_and_plugins_has_a_man_page(share):
    pages = {page.name for page in (share / "man/man1").iterdir()}

    assert {
        f"temper-{name}.1" for name in (*CORE_COMMANDS, "lint", "k8s", "diff", "map", "top")
    } <= pages
    assert {"temper.1", "temper-engine-check.1", "temper-k8s-doctor.1"} <= pages


def test_a_page_says_what_the_command_does_and_takes(share):
    page = (share / "man/man1/temper-doctor.1").read_text()

    assert page.startswith(".TH ")
    assert "Check what enforcing needs on this machine" in page
    assert "\\-\\-settings" in page


def test_the_first_page_lists_the_commands_of_core_and_plugins(share):
    page = (share / "man/man1/temper.1").read_text()

    assert "\\fBtemper-doctor(1)\\fP" in page
    assert "\\fBtemper-lint(1)\\fP" in page
    assert "Give every thread on this node the CPU treatment it needs.\n.SH SYNOPSIS" in page


def test_the_completion_files_lie_where_each_shell_looks(share):
    for place in (
        "bash-completion/completions/temper",
        "zsh/site-functions/_temper",
        "fish/vendor_completions.d/temper.fish",
    ):
        assert "_TEMPER_COMPLETE" in (share / place).read_text()


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_takes_its_completion_file(share):
    script = share / "bash-completion/completions/temper"

    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False)

    assert done.returncode == 0
