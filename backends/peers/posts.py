"""Reports of bugs, as a library's own tracker takes them."""

from __future__ import annotations

import re
from typing import Any

from peer_results import HERE, Finding

#: What a finding says that nobody reported.
NOT_REPORTED = "A search of the tracker found no report of it."


def post(found: Finding, run: dict[str, Any], whole: bool = False) -> str:
    """A report of one bug. As a `whole` it has the program in it, for the library's own tracker; else a link."""
    program = (HERE / "bugs" / f"{found['name']}.py").read_text()
    subject, _, title = re.sub(r"\s+", " ", program.split('"""')[1]).strip().partition(": ")
    name = f"{found['name']}.py"
    lines = [f"# {title[0].upper()}{title[1:]}" if title[0] != "`" else f"# {title}", ""]
    lines += [f"{subject}: {', '.join(run['versions'])}." if "versions" in run else f"{subject}."]
    if "machine" in run:
        machine = re.sub(r"-fc-\S+", "", run["machine"])
        lines += ["", f"System and processor: {machine}."]
    lines += [""]
    if whole:
        lines += ["This program needs the library alone:", ""]
        lines += ["```python", program.split('"""', 2)[2].strip(), "```", ""]
    else:
        lines += [f"The program [{name}](../../../backends/peers/bugs/{name}) needs the library alone.", ""]
    lines += [f"Its output, in {run['wrong']} of {run['runs']} fresh processes:", "", "```text", run["says"], "```", ""]
    lines += [f"On AVX2: {found['avx2'][0].lower()}{found['avx2'][1:]}", ""] if "avx2" in found else []
    lines += [f"**Expected:** {found['wanted']}", "", f"**Cause:** {found['where']}", ""]
    lines += [f"**Who is hit:** {found['who']}", "", f"**Related:** {found['upstream']}"]
    return "\n".join(lines) + "\n"
