from pathlib import Path

import pytest

from bench.enforcing.report import read, table

BENCH = Path(__file__).parents[3] / "bench"
RECORDS = sorted((BENCH / "enforcing/records").glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_page_has_the_table_of_each_record(path):
    lines = "\n".join(table(read([path])))

    assert lines.count("\n") > 2
    assert lines in (BENCH / "README.md").read_text()
