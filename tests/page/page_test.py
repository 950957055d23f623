#!/usr/bin/env python3
"""page_test.py ATTEST PLUGINS AXE [PAGE...]: pages of `attest report` in a real browser.

PLUGINS is the folder of the tests' plug-ins, AXE the script of axe-core. Pages of a check as large as the matrix, of wrong
backends, of a bench, of a comparison and of hostile results are opened in headless Chromium at two widths in both themes:
each in less than two seconds, with no error in the console, nothing wider than the screen, and nothing that axe-core
calls serious. Then the case table is driven, and the page read in a text browser. Ends with 77 where a tool is
missing.

With names of pages these are opened instead, in the same way, and pictures to look at are written beside them: one part of the page
after another, in both themes and widths, and all as it is printed.
"""

import base64
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select
except ImportError:
    print("selenium is not installed: python3-selenium")
    sys.exit(77)

ATTEST, PLUGINS, AXE = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_SECONDS_TO_OPEN, MOST_SECONDS_TO_WRITE, MOST_BYTES_OF_A_RESULT = 2, 1, 140
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&<!--\x1b[2J"
complaints = []


def complain(what):
    complaints.append(what)
    print("FAILED:", what, file=sys.stderr)


def expect(truth, what):
    if not truth:
        complain(what)


def attest(*words, code=0):
    done = subprocess.run([ATTEST, *map(str, words)], capture_output=True, text=True)
    if code is not None and done.returncode != code:
        complain(f"attest {' '.join(map(str, words))}: exit code {done.returncode}, wanted {code}: {done.stderr}")
    return done


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def large_check(smoke, path):
    """A check of every line of the matrix on five backends, its numbers like those of smoke."""
    lines = lines_of(smoke)
    verdicts = [line for line in lines if line["kind"] == "verdict"]
    numbers = random.Random(7)
    cases = [line.strip() for line in (ROOT / "tests/cases/matrix.cases").read_text().splitlines()]
    made = []
    for case in cases:
        if not case or case.startswith("#"):
            continue
        for backend in ("example", "eigen", "xtensor", "opencl", "clblast"):
            one = dict(numbers.choice(verdicts))
            one.update(suite="matrix", case=case, backend=backend, repro=f"attest check --backend {backend} '{case}'")
            if one["error_over_bound"] is not None:
                one["error_over_bound"] = numbers.random()
            made.append(one)
    write_lines(path, [lines[0], *made, lines[-1]])
    return len(made)


def hostile(source, path):
    """Every text that a file of verdicts holds, but kinds and statuses, tries to leave its place."""
    lines = lines_of(source)

    def poison(value, key=""):
        if isinstance(value, dict):
            return {k: poison(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [poison(one) for one in value]
        return value + HOSTILE if isinstance(value, str) and key not in ("kind", "status") else value

    for line in lines:
        if line["kind"] != "summary":
            for key in list(line):
                if key in ("error_map",):
                    line[key]["output"] += HOSTILE
                elif key not in ("seconds", "rows", "rows_checked", "error_over_bound", "error_over_sigma"):
                    line[key] = poison(line[key], key)
            if isinstance(line.get("worst"), dict):
                for key in ("got", "expected", "bound"):  # numbers, or the names of those that JSON lacks
                    line["worst"][key] = 1.0
    write_lines(path, lines)


def wrong_before(source, path):
    """The same run with its first ten failures right."""
    lines = lines_of(source)
    for line in [line for line in lines if line.get("status") == "fail"][:10]:
        line.update(status="pass", reason=None, error_over_bound=0.5)
        line.pop("cause", None)
    write_lines(path, lines)
    return path


class Browser:
    def __init__(self, width, theme):
        options = Options()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(60)
        self.name, self.width = f"{width} pixels, {theme}", width
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def open(self, page):
        """From the start of loading to the end of the script, by the browser's own clock; the better of two."""
        seconds = []
        for _ in range(2):
            self.driver.get(page.as_uri())
            seconds.append(self.driver.execute_script("return performance.timing.loadEventEnd - performance.timing.navigationStart") / 1e3)
            if seconds[-1] < MOST_SECONDS_TO_OPEN:
                break
        where = f"{page.name}, {self.name}"
        expect(0 < min(seconds) < MOST_SECONDS_TO_OPEN, f"{where}: opens in {min(seconds)} s")
        for entry in self.driver.get_log("browser"):
            complain(f"{where}: the console says {entry['message']}")
        wide = self.driver.execute_script("return document.documentElement.scrollWidth")
        expect(wide <= self.width, f"{where}: {wide} pixels wide")
        cut = self.driver.execute_script(
            "return Array.from(document.querySelectorAll('.chart')).filter(c => c.scrollWidth > c.clientWidth + 1).length")
        expect(cut == 0 or self.width > 500, f"{where}: {cut} charts are not whole")
        order = self.driver.execute_script("return Array.from(document.querySelectorAll('section')).map(s => s.id)")
        expect("speeds" not in order or "cases" not in order or order.index("speeds") < order.index("cases"),
               f"{where}: speeds stand behind the table of all cases: {order}")
        unread = self.driver.execute_script(
            "return Array.from(document.querySelectorAll('td.number, .worst, svg text')).map(n => n.textContent.trim())"
            ".filter(t => /^-?(\\d{8,}|0\\.0000\\d+|[\\d.]+e([+]|-0)\\d+)$/.test(t))")
        expect(not unread, f"{where}: numbers as nobody writes them: {unread[:5]}")
        expect(self.driver.title != "owned", f"{where}: a text of the results was run")
        loaded = self.driver.execute_script("return performance.getEntriesByType('resource').length")
        expect(loaded == 0, f"{where}: loads {loaded} other things")
        return min(seconds)

    def check_accessibility(self, page):
        self.driver.execute_script(AXE.read_text())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done([r.violations, r.passes.length]))")
        expect(found[1] > 10, f"{page.name}: axe looked at {found[1]} rules only")
        for one in found[0]:
            text = f"{page.name}, {self.name}: axe: {one['impact']}: {one['help']} ({one['nodes'][0]['target']})"
            if one["impact"] in ("serious", "critical"):
                complain(text)
            else:
                print("axe, minor:", text)

    def pictures(self, stem, most=8, height=1800):
        """Of the page as it is open, from its top: as many as are needed, and not more than `most`."""
        length = self.driver.execute_script("return document.documentElement.scrollHeight")
        for n in range(min(most, -(-length // height))):
            clip = {"x": 0, "y": n * height, "width": self.width, "height": min(height, length - n * height), "scale": 1}
            drawn = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
            pathlib.Path(f"{stem}.{n + 1}.png").write_bytes(base64.b64decode(drawn["data"]))

    def printed(self, stem):
        """As PDF, and as pictures of what a sheet gets: a browser's picture of a PDF can't be had."""
        ask = self.driver.execute_cdp_cmd
        ask("Emulation.setEmulatedMedia", {"media": "print"})
        self.pictures(stem)
        ask("Emulation.setEmulatedMedia", {"media": "", "features": [{"name": "prefers-color-scheme", "value": "light"}]})
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False}
        stem.with_suffix(".pdf").write_bytes(base64.b64decode(ask("Page.printToPDF", paper)["data"]))

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)


def drive(browser, page, count):
    """Filter, sort, pages and details of the case table."""
    browser.open(page)
    number = lambda: int(browser.one("#count").text.split(" of ")[0].replace(",", ""))
    column = lambda n: [row.find_elements(By.TAG_NAME, "td")[n].text for row in browser.all("#rows > tr")]
    expect(number() == count, f"the table has {number()} of {count} results")
    expect(len(browser.all("#rows > tr")) == 50, "a page has 50 rows")
    errors = [float(text) for text in column(4)]
    expect(errors == sorted(errors, reverse=True), "the largest errors come first")
    browser.one("#next").click()
    expect(browser.one("#page").text.startswith("page 2 of "), "the next page is the second")
    expect(float(column(4)[0]) <= errors[-1], "the second page goes on where the first ended")
    browser.one("#previous").click()
    expect([float(text) for text in column(4)] == errors, "the page before is the first again")
    browser.all("#heads button")[3].click()
    cases = column(3)
    expect(cases == sorted(cases), "a click on a column's head sorts by it")
    expect(browser.all("#heads th")[3].get_attribute("aria-sort") == "ascending", "the head says how it is sorted")
    browser.all("#heads button")[3].click()
    expect(column(3) == sorted(column(3), reverse=True), "a second click turns it round")
    browser.one("#filter").send_keys("softcap CAUSAL")
    expect(0 < number() < count, "a filter keeps some")
    expect(all("softcap" in case and "causal" in case for case in column(3)), "a filter keeps those with its words")
    Select(browser.one("#backend")).select_by_value("eigen")
    expect(set(column(1)) == {"eigen"}, "a backend alone")
    browser.one("#filter").clear()
    browser.one("#filter").send_keys("no such words")
    expect(number() == 0 and not browser.all("#rows > tr"), "a filter may keep nothing")
    browser.one("#filter").clear()
    browser.one("#filter").send_keys(" ")
    button = browser.one("#rows button.open")
    button.click()
    expect(button.get_attribute("aria-expanded") == "true", "a case is open")
    expect("attest check --backend eigen" in browser.one("#rows tr.details").text, "its details say how to repeat it")
    button.click()
    expect(not browser.all("#rows tr.details"), "and it can be closed")


def follow(browser, page):
    """What is shown stands in the address, links lead to one case, and commands can be copied."""
    browser.open(page)
    browser.one("#filter").send_keys("seq")
    Select(browser.one("#status")).select_by_value("fail")
    Select(browser.one("#run")).select_by_value("wrong.jsonl")
    browser.all("#heads button")[3].click()
    shown = [row.text for row in browser.all("#rows > tr")]
    address = browser.driver.current_url
    expect(shown and all(word in address for word in ("filter=seq", "verdict=fail", "run=wrong.jsonl", "sort=case", "up=1")), address)
    browser.driver.get("about:blank")
    browser.driver.get(address)
    expect([row.text for row in browser.all("#rows > tr")] == shown, f"the same address shows the same: {address}")
    case = browser.one("#failures code.case")
    name, backend = case.text, case.get_attribute("data-backend")
    case.click()
    rows = browser.all("#rows > tr:not(.details)")
    expect(rows and all(name in row.text and backend in row.text for row in rows), f"a link leads to {name} on {backend}")
    expect(len(browser.all("#rows tr.details")) == 1, "the case of a link is open")
    link = browser.one("#rows tr.details a").get_attribute("href")
    expect("case=" in link, f"a case has a link to itself: {link}")
    browser.one("#count button").click()
    expect("case=" not in browser.driver.current_url, "all cases can be shown again")
    button = browser.one("#failures button.copy")
    browser.driver.execute_script("arguments[0].scrollIntoView()", button)
    button.click()
    browser.driver.execute_async_script("setTimeout(arguments[0], 300)")
    expect(button.text == "Copied", f"a command is copied: {button.text}")
    expect(len(browser.all("#runs tbody")) > 0, "runs stand side by side")


def visit(pages, looked_at=False, also=lambda browser: None):
    """Opens each page at both widths in both themes."""
    for width, theme in ((1280, "light"), (390, "dark"), (1280, "dark"), (390, "light")):
        browser = Browser(width, theme)
        try:
            for page in pages:
                took = browser.open(page)
                print(f"{page.name}, {browser.name}: {took:.2f} s")
                # Both themes and both widths are seen by the checker once for each page.
                if (width, theme) in ((1280, "light"), (390, "dark")):
                    browser.check_accessibility(page)
                browser.driver.get_log("browser")
                if looked_at:
                    browser.pictures(page.with_suffix(f".{width}-{theme}"))
                    if (width, theme) == (1280, "light"):
                        browser.printed(page.with_suffix(".print"))
            if (width, theme) == (1280, "light"):
                also(browser)
        finally:
            browser.driver.quit()


def main(scratch):
    smoke, wrong, bench = scratch / "smoke.jsonl", scratch / "wrong.jsonl", scratch / "bench.json"
    attest("check", "--suite", "smoke", "--json", smoke)
    attest("check", "--plugin", PLUGINS / "libfaulty_plugin.so", "--no-isolate", "--backend",
           "mask_off_by_one,nan_on_empty_row,tail_keys_counted,missing_scale", "--suite", "smoke", "--json", wrong, code=1)
    attest("bench", "seq=64 dim=16", "seq=128 dim=16", "dtype=f64 seq=64 dim=32", "--backend", "example,eigen", "--repetitions", 3,
           "--min-time", 0, "--threads", 1, "--json", bench, code=None)
    attest("bench", "dim=16", "dim=8 causal", "--sweep", "seq=16..64", "--backend", "example,eigen", "--repetitions", 3, "--min-time", 0,
           "--threads", 1, "--json", scratch / "sweep.json", code=None)
    attest("compare", ROOT / "results/zen3-2-cores.json", ROOT / "results/avx512-2-cores.json", "--json", scratch / "compared.json", code=None)
    count = large_check(smoke, scratch / "large.jsonl")
    hostile(wrong, scratch / "hostile.jsonl")

    pages = {name: scratch / (name + ".html") for name in ("large", "wrong", "speeds", "sweep", "compared", "hostile", "mixed", "runs")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    attest("report", scratch / "large.jsonl", "--out", pages["large"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Processor time: it works in one thread, and what others do on the machine doesn't count.
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = pages["large"].stat().st_size
    print(f"{count} results: {size / 2**20:.2f} MiB, written in {seconds:.2f} s")
    expect(size < MOST_BYTES_OF_A_RESULT * count, f"the large page has {size} bytes for {count} results")
    expect(seconds < MOST_SECONDS_TO_WRITE, f"the large page takes {seconds:.2f} s")
    attest("report", wrong, "--out", pages["wrong"])
    attest("report", bench, ROOT / "results/avx512-2-cores.json", "--out", pages["speeds"])
    attest("report", scratch / "sweep.json", "--out", pages["sweep"])
    attest("report", scratch / "compared.json", "--out", pages["compared"])
    attest("report", scratch / "hostile.jsonl", "--out", pages["hostile"])
    attest("report", smoke, wrong, wrong_before(wrong, scratch / "before.jsonl"), "--out", pages["runs"])
    attest("report", wrong, smoke, bench, scratch / "compared.json", "--out", pages["mixed"])

    def also(browser):
        drive(browser, pages["large"], count)
        follow(browser, pages["runs"])
        browser.open(pages["sweep"])
        rows = [row.text for row in browser.all("#speeds .charts + p + .scroll tbody tr")]
        expect(len(rows) == 4 and all("16 to 64" in row for row in rows), f"four curves grow with seq: {rows}")

    visit(pages.values(), also=also)
    text = subprocess.run(["w3m", "-dump", "-cols", "120", pages["wrong"]], capture_output=True, text=True).stdout
    for words in (" failed", "mask_off_by_one", "Repeat the first", "attest check", "Where it comes from"):
        expect(words in text, f"a text browser doesn't show \"{words}\"")
    expect("failed" in text.splitlines()[0], f"the first line in a text browser: {text.splitlines()[0]}")


if __name__ == "__main__":
    for tool in ("chromium", "chromedriver", "w3m"):
        if not shutil.which(tool):
            print(f"{tool} is not installed")
            sys.exit(77)
    if not AXE.is_file():
        print(f"{AXE} is not there: scripts/test.sh fetches it")
        sys.exit(77)
    if len(sys.argv) > 4:
        visit([pathlib.Path(page).resolve() for page in sys.argv[4:]], looked_at=True)
        sys.exit(1 if complaints else 0)
    keep = os.environ.get("ATTEST_KEEP_PAGES")
    with tempfile.TemporaryDirectory() as folder:
        main(pathlib.Path(keep or folder))
    sys.exit(1 if complaints else 0)
