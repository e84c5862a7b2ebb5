"""A call's way: to the version that the deployment says, to the next, to the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import BusyError, OperatorError, UsageError
from opkit.service import Service, ServiceSettings

X = np.arange(4, dtype=np.float32)
OpenService = Callable[..., Any]


def versions_of(service: Any, count: int = 200, **named: Any) -> set[str]:
    return {service.call("twice", [X], **named).version for _ in range(count)}


def test_the_default_answers(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"})
    answer = service.call("twice", [X])
    assert answer.outputs[0][0].tolist() == (2 * X).tolist()
    assert (answer.version, answer.reason, answer.attempts) == ("v1", "the default", ())
    assert len(answer.digest) == 64


def test_a_version_can_be_asked_for_by_label_and_by_content(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"})
    assert service.call("twice", [X], version="v2").version == "v2"
    digest = service.call("twice", [X], version="v2").digest
    assert service.call("twice", [X], version=digest[:12]).version == "v2"
    with pytest.raises(UsageError, match='no version "v9"'):
        service.call("twice", [X], version="v9")


def test_callers_keep_their_version_and_shares_hold(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"}, deployment={"shares": {"v2": 0.3}})
    first = {f"c{n}": service.call("twice", [X], caller=f"c{n}").version for n in range(400)}
    again = {f"c{n}": service.call("twice", [X], caller=f"c{n}").version for n in range(400)}
    assert first == again
    share = sum(version == "v2" for version in first.values()) / len(first)
    assert 0.2 < share < 0.4
    service.deploy("twice", {"shares": {"v2": 0.6}})
    grown = {name: service.call("twice", [X], caller=name).version for name in first}
    assert all(grown[name] == "v2" for name, version in first.items() if version == "v2")


def test_shares_by_request_give_one_caller_both_versions(open_service: OpenService) -> None:
    deployment = {"shares": {"v2": 0.5}, "by": "request"}
    service = open_service({"v1": "good", "v2": "good"}, deployment=deployment)
    assert versions_of(service, caller="one") == {"v1", "v2"}


def test_a_pinned_caller_has_its_version(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"}, deployment={"pins": {"lab": "v2"}})
    assert versions_of(service, 5, caller="lab") == {"v2"}
    assert versions_of(service, 5, caller="other") == {"v1"}


def test_a_wrong_answer_is_never_given_where_it_is_checked(open_service: OpenService) -> None:
    service = open_service({"v2": "wrong", "v1": "good"}, checks={"sample_rate": 1})
    answer = service.call("twice", [X])
    assert answer.outputs[0][0].tolist() == (2 * X).tolist()
    assert (answer.version, answer.attempts[0].kind) == ("v1", "wrong")
    assert "misses the conditioned standard" in answer.attempts[0].message
    assert service.operator("twice").versions["v2"].breaker.is_closed is False
    assert service.call("twice", [X]).attempts == ()


def test_a_version_that_is_wrong_for_one_shape_is_found_at_its_first_call(
    open_service: OpenService,
) -> None:
    checks = {"sample_rate": 0, "first_calls": 1}
    service = open_service({"v2": "wrong_at_5", "v1": "good"}, checks=checks)
    for length in (1, 2, 3, 4, 6, 7):
        assert service.call("twice", [np.ones(length, np.float32)]).version == "v2"
    answer = service.call("twice", [np.ones(5, np.float32)])
    assert (answer.version, answer.outputs[0][0].tolist()) == ("v1", [2.0] * 5)


def test_a_nan_that_no_input_brought_is_checked_whatever_the_rate(
    open_service: OpenService,
) -> None:
    checks = {"sample_rate": 0, "first_calls": 0}
    service = open_service({"v2": "nan", "v1": "good"}, checks=checks)
    answer = service.call("twice", [X])
    assert (answer.version, answer.attempts[0].kind) == ("v1", "wrong")
    given = service.call("twice", [np.array([np.nan], np.float32)])
    assert np.isnan(given.outputs[0][0][0])
    assert given.attempts == ()


def test_the_reference_answers_where_no_version_does(open_service: OpenService) -> None:
    service = open_service({"v1": "wrong"}, checks={"sample_rate": 1})
    answer = service.call("twice", [X])
    assert answer.version == "reference"
    assert answer.outputs[0][0].tolist() == (2 * X).tolist()
    assert answer.outputs[0][1] == "float32"


def test_without_a_reference_the_error_names_every_attempt(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, golden="")
    service.operator("twice").versions["v1"].breaker.fail("wrong", "by hand")
    with pytest.raises((BusyError, OperatorError), match="twice: no version"):
        service.call("twice", [X])


def test_inputs_that_no_version_takes_are_the_callers_fault(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"})
    with pytest.raises(UsageError, match="float64"):
        service.call("twice", [X.astype(np.float64)])
    with pytest.raises(UsageError):
        service.call("twice", [X, X])
    with pytest.raises(UsageError, match='no operator "thrice"'):
        service.call("thrice", [X])
    assert all(item.breaker.is_closed for item in service.operator("twice").versions.values())


def test_a_version_that_refuses_what_another_takes_is_taken_out(open_service: OpenService) -> None:
    service = open_service({"v2": "refuse", "v1": "good"}, breaker={"failures": 3})
    for _ in range(4):
        assert service.call("twice", [X]).version == "v1"
    assert not service.operator("twice").versions["v2"].breaker.is_closed


def test_more_calls_than_the_queue_holds_are_refused(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, limits={"queue": 1})
    room = service.operator("twice")._room
    assert room.acquire(blocking=False)
    with pytest.raises(BusyError, match="1 calls are under way"):
        service.call("twice", [X])
    room.release()
    assert service.call("twice", [X]).version == "v1"


def test_tensors_longer_than_the_limit_are_refused(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, limits={"tensor_bytes": 1024})
    with pytest.raises(UsageError, match="more than 1024"):
        service.call("twice", [np.zeros(1000, np.float32)])


def test_a_deployment_outlives_the_service_and_rolls_back(
    open_service: OpenService, tmp_path: Path
) -> None:
    store = tmp_path / "kept"
    service = open_service({"v1": "good", "v2": "good"}, store=store)
    service.deploy("twice", {"default": "v2"})
    service.close()
    # Another configuration of the same store, whose sources have gone.
    settings = ServiceSettings.model_validate({"store": store, "isolation": "none"})
    with Service(settings) as again:
        assert again.call("twice", [X]).version == "v2"
        assert again.roll_back("twice").reason == "rolled back to revision 1"
        assert again.call("twice", [X]).version == "v1"
        with pytest.raises(UsageError, match="no earlier state"):
            again.roll_back("twice")
        assert [item.deployment.default for item in again.history("twice")] == ["v1", "v2", "v1"]
        assert again.roll_back("twice", to=2).deployment.default == "v2"


def test_rolling_back_twice_goes_two_states_back(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good", "v3": "good"})
    service.deploy("twice", {"default": "v2"})
    service.deploy("twice", {"default": "v3"})
    assert service.roll_back("twice").deployment.default == "v2"
    assert service.roll_back("twice").deployment.default == "v1"


def test_changes_that_do_not_fit_change_nothing(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"})
    for change, message in (
        ({"default": "v9"}, 'no version "v9"'),
        ({"shares": {"v2": 1.5}}, "shares are from 0 to 1"),
        ({"shares": {"v1": 0.5}}, "is the default"),
        ({"retired": ["v1"]}, "is retired"),
        ({"color": "red"}, 'no "color"'),
        ({"choice": "magic"}, "choice"),
    ):
        with pytest.raises(UsageError, match=message):
            service.deploy("twice", change)
    assert len(service.history("twice")) == 1


def test_versions_never_change(open_service: OpenService, make_version: Any) -> None:
    service = open_service({"v1": "good"})
    other = make_version("other")
    with pytest.raises(UsageError, match="versions never change"):
        service.add_version("twice", "v1", str(other))
    service.add_version("twice", "v2", str(other))
    with pytest.raises(UsageError, match="is the content of v2 already"):
        service.add_version("twice", "v3", str(other))
    assert service.call("twice", [X], version="v2").version == "v2"
    for label in ("reference", "", "a b", "../v1"):
        with pytest.raises(UsageError, match="is no label"):
            service.add_version("twice", label, str(other))


def test_shadow_calls_are_compared_and_nobody_sees_them(open_service: OpenService) -> None:
    deployment = {"shadow": {"v2": 1.0, "v3": 1.0}}
    service = open_service({"v1": "good", "v2": "wrong", "v3": "good"}, deployment=deployment)
    for _ in range(10):
        assert service.call("twice", [X]).version == "v1"
    service.settle()
    wrong, right = (service.operator("twice").shadows[label] for label in ("v2", "v3"))
    assert (wrong.calls, wrong.wrong, wrong.largest_difference) == (10, 10, 1.0)
    assert (right.calls, right.same_bits) == (10, 10)


def test_measured_choice_takes_the_faster_version_and_says_why(open_service: OpenService) -> None:
    service = open_service({"v1": "good", "v2": "good"}, deployment={"choice": "measured"})
    bucket = service.operator("twice")._signatures.of([(X, "float32")]).bucket
    for label, seconds in (("v1", 2e-3), ("v2", 1e-3)):
        meter = service.metrics.meter("twice", label, bucket)
        for _ in range(300):
            meter.own_recent.append(seconds)
    answer = service.call("twice", [X])
    assert answer.version == "v2"
    assert re.search(r"v2 1e\+03 us, median measured .* v1 2e\+03 us", answer.reason)


def test_a_version_on_trial_gets_copies_until_it_is_right(open_service: OpenService) -> None:
    breaker = {"open_seconds": 0.01, "trials": 2, "failures": 1}
    service = open_service({"v2": "good", "v1": "good"}, breaker=breaker)
    version = service.operator("twice").versions["v2"]
    version.breaker.fail("crash", "by hand")
    seen = []
    for _ in range(400):
        seen.append(service.call("twice", [X]).version)
        service.settle()
        if version.breaker.is_closed:
            break
    assert set(seen) == {"v1"}
    assert service.call("twice", [X]).version == "v2"
    events = [event["event"] for event in service.log.kept()]
    assert events == ["breaker_open", "breaker_trial", "breaker_closed"]


def test_metrics_have_every_attempt_and_few_buckets(open_service: OpenService) -> None:
    service = open_service({"v1": "good"}, checks={"sample_rate": 0, "first_calls": 0})
    for rank in range(1, 60):
        service.call("twice", [np.ones((1,) * rank if rank < 8 else (rank * 1000,), np.float32)])
    for power in range(20):
        service.call("twice", [np.ones(1 << power, np.float32)])
        service.call("twice", [np.ones((1 << power, 2), np.float32)])
    buckets = {bucket for _, _, bucket in service.metrics.meters}
    assert len(buckets) <= 33
    assert "other" in buckets
    text = service.metrics.text()
    assert "# TYPE opkit_attempts_total counter" in text
    counts = re.findall(r'^opkit_attempts_total\{.*outcome="ok".*\} (\S+)$', text, re.MULTILINE)
    assert sum(map(float, counts)) == 99
    assert "an estimate" in text or "estimate:" in text


def test_traces_go_to_a_file(open_service: OpenService, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    import json

    file = tmp_path / "spans.jsonl"
    service = open_service({"v1": "good"}, telemetry={"traces": str(file)})
    service.call("twice", [X])
    service.close()
    (span,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert span["attributes"]["opkit.version"] == "v1"


def test_a_version_does_not_come_back_by_shapes_that_it_is_right_for(
    open_service: OpenService,
) -> None:
    service = open_service(
        {"v2": "wrong_at_5", "v1": "good"},
        breaker={"open_seconds": 0.001, "longest_seconds": 0.001, "trials": 1},
        checks={"sample_rate": 0, "first_calls": 1},
    )
    assert service.call("twice", [np.ones(5, np.float32)]).attempts[0].kind == "wrong"
    for _ in range(5000):
        assert service.call("twice", [X]).version == "v1"
        service.settle()
        if service.metrics.counters.get(("trial_calls", "twice"), 0) > 3:
            break
    else:
        pytest.fail("the version gets no trial calls")
    for _ in range(5):
        assert service.call("twice", [np.ones(5, np.float32)]).outputs[0][0].tolist() == [2.0] * 5
    assert not service.operator("twice").versions["v2"].breaker.is_closed


def test_of_every_ten_answers_in_a_row_one_is_checked(open_service: OpenService) -> None:
    checks = {"sample_rate": 0.1, "first_calls": 0}
    service = open_service({"v1": "good"}, checks=checks)
    checked = [service.call("twice", [X]).checked for _ in range(300)]
    assert [sum(checked[at : at + 10]) for at in range(0, 300, 10)] == [1] * 30


def test_a_check_that_could_not_be_done_is_made_up_for(open_service: OpenService) -> None:
    from opkit.service.workers.attempts import AttemptFailed

    checks = {"sample_rate": 0, "first_calls": 1}
    service = open_service({"v1": "good"}, checks=checks)
    reference = service.operator("twice").reference
    judge = reference.judge

    def unavailable(*_: object) -> str:
        raise AttemptFailed("unavailable", "for a while")

    reference.judge = unavailable
    # The first calls of a version are answers that nobody knows: they used to go out unchecked.
    answers = [service.call("twice", [X]) for _ in range(3)]
    assert [answer.version for answer in answers] == ["reference"] * 3
    assert {a.kind for answer in answers for a in answer.attempts} == {"unjudged"}
    reference.judge = judge
    assert [service.call("twice", [X]).checked for _ in range(3)] == [True, False, False]
    meter = next(meter for key, meter in service.metrics.meters.items() if key[1] == "v1")
    assert (meter.checked, meter.unchecked, meter.outcomes["unjudged"]) == (1, 2, 3)


def test_with_neither_a_judge_nor_a_reference_first_calls_fail(open_service: OpenService) -> None:
    from opkit.service.workers.attempts import AttemptFailed

    service = open_service({"v1": "wrong"}, checks={"sample_rate": 0, "first_calls": 1})
    reference = service.operator("twice").reference

    def unavailable(*_: object) -> str:
        raise AttemptFailed("unavailable", "its process has ended")

    reference.judge = reference.run = unavailable
    with pytest.raises(BusyError, match="no version and no reference is ready"):
        service.call("twice", [X])


def test_a_version_whose_sample_was_not_judged_answers_again_when_one_is(
    open_service: OpenService,
) -> None:
    # Such samples of a version that had been right before used to go out.
    from opkit.service.workers.attempts import AttemptFailed

    service = open_service({"v1": "good"}, checks={"sample_rate": 0.25, "first_calls": 1})
    reference = service.operator("twice").reference
    judge = reference.judge
    assert service.call("twice", [X]).checked

    def unavailable(*_: object) -> str:
        raise AttemptFailed("unavailable", "for a while")

    reference.judge = unavailable
    answers = [service.call("twice", [X]).version for _ in range(12)]
    # One of four is due; from then on none goes out.
    assert answers.index("reference") < 4
    assert set(answers[answers.index("reference") :]) == {"reference"}
    reference.judge = judge
    answer = service.call("twice", [X])
    assert (answer.version, answer.checked) == ("v1", True)


def test_a_trial_that_nobody_judged_brings_no_version_back(open_service: OpenService) -> None:
    # Three of them used to: a version that was known to be wrong answered again.
    from opkit.service.workers.attempts import AttemptFailed

    service = open_service({"v2": "wrong", "v1": "good"}, checks={"sample_rate": 1})
    served = service.operator("twice").versions["v2"]
    operator = service.operator("twice")
    service.call("twice", [X])
    assert not served.breaker.is_closed
    served.breaker._until = 0.0
    assert served.breaker.state.value == "trial"

    def unavailable(*_: object) -> str:
        raise AttemptFailed("hang", "it does not answer")

    operator.reference.judge = unavailable
    for _ in range(5):
        operator._aside._try(served, served.evidence)
    assert served.breaker.state.value == "trial"
    assert served.evidence is not None
