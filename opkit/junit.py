"""JUnit XML, as CI servers read it: one suite of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["JunitCase", "junit_text"]


@dataclass(frozen=True)
class JunitCase:
    """One case of a suite."""

    classname: str
    name: str
    seconds: float | None = None
    outcome: str = ""
    """`failure`, `error` or `skipped`; empty where the case passed."""
    message: str = ""
    text: str = ""


def junit_text(name: str, cases: Sequence[JunitCase]) -> str:
    """Return the suite's text; its time is that of the cases that tell theirs."""
    # Loading it costs some milliseconds, and most commands write none.
    from xml.etree import ElementTree

    timed = [case.seconds for case in cases if case.seconds is not None]
    counts = {
        key: str(sum(case.outcome == outcome for case in cases))
        for key, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(cases)))
    for key, count in counts.items():
        suite.set(key, count)
    if timed:
        suite.set("time", f"{sum(timed):.6f}")
    for case in cases:
        element = ElementTree.SubElement(
            suite, "testcase", classname=case.classname, name=case.name
        )
        if case.seconds is not None:
            element.set("time", f"{case.seconds:.6f}")
        if case.outcome:
            outcome = ElementTree.SubElement(element, case.outcome, message=_clean(case.message))
            outcome.text = _clean(case.text)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Drop the characters that XML 1.0 cannot hold, which a kernel's own message may have."""
    return "".join(c for c in text if c in "\t\n" or ord(c) >= 0x20)
