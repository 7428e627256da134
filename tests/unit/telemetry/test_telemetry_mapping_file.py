"""A mapping file: everything wrong in it is told at once, with the nearest known name."""

import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.signals import Vantage
from headrace.streams.core.mapping import strict_yaml
from headrace.streams.core.mapping.parse import load_preset, parse_mapping, preset_names, preset_text
from headrace.streams.core.mapping.reading import Field, Over

LEAST = 'identity: {engine: ["{i}"], model: [m]}\nfields: {ttft: {names: [x]}}\n'


def problems(document: str) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as raised:
        parse_mapping(document, "mapping.yaml")
    return raised.value.problems


def test_every_preset_is_right_and_is_its_own_text() -> None:
    assert preset_names() == (
        "dynamo",
        "otel_genai",
        "ray_serve",
        "sglang",
        "tgi",
        "triton",
        "trtllm",
        "vllm_v0",
        "vllm_v1",
    )
    for name in preset_names():
        mapping = load_preset(name)
        assert (mapping.name, parse_mapping(preset_text(name)).hash) == (name, mapping.hash)
        assert any(rule.required for rule in mapping.rules)


def test_all_problems_come_at_once_each_with_where_and_the_nearest_name() -> None:
    assert problems(
        """
vantge: ENGINE
vantage: ENGIN
carrier: 3
where: "a ="
labels: [a]
drop_labels: a
identity: {engin: ["{a}"], engine: ["{a"], rank: 3}
unmapped: {model: drop}
limits: {max_series: 0}
fields:
  tfft: {names: [x]}
  ttft: {names: [{name: x, unit: minutes}], path: a}
  tbot: {names: []}
  e2e: {names: [{nam: x}], over_ranks: summ}
  running: {histogram: {count: a}}
  kv_usage: {names: [{name: x, unit: s, match: a}], required: 1}
"""
    ) == (
        "vantge is unknown; did you mean 'vantage'?",
        "fields.tfft is unknown; did you mean 'ttft'?",
        "fields.ttft has names and path; expected one of names, path, histogram, each",
        "fields.tbot.names is []; expected a list of 1 to 64 names",
        "fields.e2e.over_ranks is 'summ'; did you mean 'sum'?",
        "fields.e2e.names[0].nam is unknown; did you mean 'name'?",
        "fields.e2e.names[0].name is None; expected the name of a series",
        "fields.running has histogram; expected names",
        "fields.kv_usage.required is 1; true or false",
        "fields.kv_usage.names[0].unit is 's'; kv_usage has ratio, percent",
        "fields.kv_usage.names[0].match is 'a'; expected labels and values",
        "identity.engin is unknown; did you mean 'engine'?",
        'identity.model is missing; write for example model: ["{model_name}"]',
        "identity.engine '{a' has a brace without its pair",
        "unmapped.model is 'drop'; there are keep, reject, other",
        "identity.rank is 3; expected a list of texts",
        "vantage is 'ENGIN'; did you mean 'ENGINE'?",
        "where is 'a ='; no JMESPath: Bad jmespath expression: Unknown token '=': a = ^",
        "labels is ['a']; expected names and texts",
        "drop_labels is 'a'; expected a list of texts",
        "carrier is 3; expected a carrier's name",
        "limits.max_series is 0; expected a whole number, 1 to 100000",
    )


def test_problems_of_a_document_mapping() -> None:
    assert problems(
        """
name: 3
document: {labels: {a: 1, b: [x]}, time: 3, tme: x}
identity: {engine: ["{}", "{@kex}", ""], model: "{b}"}
fields:
  ttft: {names: [x]}
  running: {each: 1}
  waiting: {histogram: {count: c, sum: s}}
  e2e: {histogram: {count: c}}
  queue: {histogram: {count: c, sum: s, bounds: b}}
"""
    ) == (
        "document.tme is unknown; did you mean 'time'?",
        "document.labels.b is ['x']; expected a text",
        (
            "document.labels.a is '1'; no JMESPath: invalid token: Parse error at column 0, "
            'token "1" (NUMBER), for expression: "1" ^'
        ),
        "document.time is 3; expected a JMESPath",
        "fields.ttft has names; expected path, histogram or each, since there is a section document",
        "fields.e2e.histogram needs count and sum: the mean is never made up from buckets",
        "fields.queue.histogram has bounds or counts; both or neither",
        "fields.running.each is for arrivals, rejected, retries, succeeded and failed only",
        "fields.waiting.histogram is for durations only",
        "identity.engine '{}' has an empty {}",
        "identity.engine '{@kex}': {@kex} is unknown; there are {@key}, {@topic} and {@header.NAME}",
        "identity.engine a template is empty",
        "name is 3; expected a text",
    )


def test_sections_that_are_none_are_told() -> None:
    assert "fields is missing; name at least one, such as ttft" in problems("identity: {engine: [e], model: [m]}")
    assert problems("identity: 3\nfields: {ttft: 4}")[:3] == (
        "fields.ttft is 4; expected keys and values",
        "fields.ttft has no source; expected one of names, path, histogram, each",
        "identity is 3; expected keys and values",
    )
    assert problems("- a") == ("expected keys and values, such as `preset: vllm_v1`",)
    assert problems("") == ("expected keys and values, such as `preset: vllm_v1`",)


def test_an_unknown_preset_names_the_nearest() -> None:
    assert problems("preset: vllm_v2")[0].startswith("preset is 'vllm_v2'; did you mean 'vllm_v1'? there are dynamo,")
    with pytest.raises(InvalidInputError, match="preset is 'xyz'; there are dynamo"):
        preset_text("xyz")


def test_a_file_overrides_its_preset_name_by_name() -> None:
    mapping = parse_mapping(
        """
preset: vllm_v1
name: mine
vantage: GATEWAY
identity: {engine: ["{pod}"]}
fields: {running: {names: [other_running], over_ranks: max}}
"""
    )
    rules = {rule.field: rule for rule in mapping.rules}
    assert (mapping.name, mapping.vantage) == ("mine", Vantage.GATEWAY)
    assert [t.text for t in dict(mapping.identities)["engine"].templates] == ["{pod}"]
    assert [t.text for t in dict(mapping.identities)["model"].templates] == ["{model_name}"]
    assert [a.name for a in rules[Field.RUNNING].aliases] == ["other_running"]
    assert rules[Field.RUNNING].over_ranks is Over.MAX
    assert rules[Field.TTFT].required


def test_the_hash_is_of_what_a_file_says_and_not_of_how_it_says_it() -> None:
    one = parse_mapping(LEAST + "vantage: CLIENT\n", "a")
    two = parse_mapping("# a comment\nvantage: CLIENT\nname: other\n" + LEAST, "b")
    assert one.hash == two.hash
    assert one.hash != parse_mapping(LEAST).hash
    assert one == parse_mapping(LEAST + "vantage: CLIENT\n", "a")


def test_a_name_with_a_colon_goes_by_an_underscore_too() -> None:
    mapping = parse_mapping(LEAST.replace("[x]", "['a:b', c]"))
    assert [alias.name for alias in mapping.rules[0].aliases] == ["a:b", "a_b", "c"]
    assert mapping.families == {"a:b", "a_b", "c"}


def test_labels_and_values_may_be_written_as_numbers_or_booleans() -> None:
    mapping = parse_mapping(LEAST + "labels: {a: 1, b: true, c: 1.5}\nvalues: {model: {on: off}}\n")
    assert mapping.labels == (("a", "1"), ("b", "true"), ("c", "1.5"))
    assert dict(mapping.identities)["model"].values == (("on", "off"),)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("a: 1\na: 2", "line 2, column 1: the key 'a' stands twice"),
        ("a: {b: 1, b: 2}", "line 1, column 11: the key 'b' stands twice"),
        ("a: &x 1\nb: *x", "anchors and aliases are not read"),
        ("a: !!python/object:os.system x", "tags are not read"),
        ("[a]: 1", "a key must be a text"),
        ("a: [", "no YAML"),
        ("a: \x00", "no YAML"),
        ("[" * 30 + "]" * 30, "nested deeper than 20"),
        ("a: b\n" * 300_000, "characters; at most"),
        ("a: 1\n---\nb: 2", "no YAML"),
    ],
    ids=range(10),
)
def test_yaml_that_could_mean_two_things_is_refused(document: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match="f"):
        strict_yaml.load(document, "f")
    with pytest.raises(InvalidInputError) as raised:
        strict_yaml.load(document, "f")
    assert says in raised.value.problems[0]


def test_only_true_false_and_null_are_words_of_their_own() -> None:
    document = "[yes, no, on, 12:30, 0x1F, 010, 1_000, 1.5, -3, 1e3, true, false, null, ~, '1', 2026-08-22]"
    assert strict_yaml.load(document, "f") == [
        *("yes", "no", "on", "12:30", "0x1F", "010", "1_000"),
        *(1.5, -3, 1000.0, True, False, None, None, "1", "2026-08-22"),
    ]
