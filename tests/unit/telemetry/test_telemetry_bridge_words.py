"""What `headrace bridge` says: where it begins, what a dry run would do, and which file of which source is amiss."""

from pathlib import Path

import pytest

from headrace.infra.configuration.bridge_sources import read_sources
from headrace.schemas.errors import InvalidInputError
from headrace.streams.bridge.settings import BridgeSettings, SourceSettings
from headrace.streams.bridge.starting_points import told_beginnings
from headrace.streams.bridge.tally import Tally


def test_a_group_that_begins_at_the_end_says_how_many_records_it_leaves_and_how_they_are_read() -> None:
    some, none = told_beginnings({"team.metrics": 48, "team.other": 0}, "headrace-bridge")
    assert some.startswith("begins at the end of team.metrics: 48 records before it are left")
    assert 'begin = "earliest"' in some
    assert "other than headrace-bridge" in some
    assert none == "begins at the end of team.other, with no record before it"


def test_a_dry_run_says_that_it_would_publish_and_a_run_that_it_did() -> None:
    tally = Tally()
    tally.records, tally.readings, tally.points, tally.published = 1, 2, 3, 1
    assert tally.sentence("would be published").endswith("2 readings of 3 points would be published in 1 signals")
    assert tally.sentence().endswith("2 readings of 3 points published in 1 signals")


def test_a_source_whose_mapping_file_is_not_there_names_both(tmp_path: Path) -> None:
    missing = tmp_path / "mapping.yaml"
    settings = BridgeSettings({"vllm": SourceSettings("team.metrics", mapping=str(missing))})
    with pytest.raises(InvalidInputError) as raised:
        read_sources(settings)
    assert raised.value.problems == (f"bridge.sources.vllm: {missing}: cannot be read: No such file or directory",)
