// Buttons that copy commands, and the case table: filter, sort, pages, details, all of which stands in the address. All
// text goes in as text.
"use strict";
(function () {
  // A page of a file may have no clipboard: then what is selected is copied.
  function copy(node) {
    var done = function () {
      var range = document.createRange();
      range.selectNodeContents(node);
      window.getSelection().removeAllRanges();
      window.getSelection().addRange(range);
      return document.execCommand("copy");
    };
    if (!navigator.clipboard) return Promise.resolve(done());
    return navigator.clipboard.writeText(node.textContent).then(function () { return true; }, done);
  }
  function addCopyButton(code) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this command");
    button.addEventListener("click", function () {
      copy(code).then(function (done) {
        button.textContent = done ? "Copied" : "Select it by hand";
        setTimeout(function () { button.textContent = "Copy"; }, 2000);
      });
    });
    code.parentNode.insertBefore(button, code.nextSibling);
  }
  document.querySelectorAll("code.command").forEach(addCopyButton);

  var source = document.getElementById("data");
  if (!source) return;
  var data = JSON.parse(source.textContent);
  var text = data.strings;
  var PAGE = 50;

  // A row as the file has it: see case_table.cpp.
  var CASE = 0, SUITE = 1, BACKEND = 2, STATUS = 3, BOUND = 4, SIGMA = 5, REASON = 6, WAIVER = 7, WORST = 8,
      CHECKED = 9, ROWS = 10, SECONDS = 11, REPRO = 12, REPRO_END = 13, ULPS = 14, MOST_ULPS = 15;
  // Several runs have a column that tells them apart; the first row of each is known.
  var several = data.runs.length > 1;
  function runOf(n) {
    for (var run = data.runs.length - 1; run > 0; run -= 1) {
      if (n >= data.runs[run][1]) return run;
    }
    return 0;
  }
  var columns = [
    {name: "verdict", key: STATUS, words: true},
    {name: "backend", key: BACKEND, words: true},
    {name: "suite", key: SUITE, words: true},
    {name: "case", key: CASE, words: true},
    {name: "error/bound", key: BOUND},
    {name: "run s", key: SECONDS}
  ];
  var marks = {pass: "✓", fail: "✗", crashed: "✗", timeout: "✗", suspect: "!", refused: "–", inconclusive: "?", convention: "✓", weak: "≈", flaky: "✗"};
  var state = {filter: "", words: [], backend: "", status: "", run: "", only: "", column: 4, down: true, page: 0};
  var order = data.rows.map(function (_, n) { return n; });

  function get(id) { return document.getElementById(id); }
  function make(name, words, className) {
    var node = document.createElement(name);
    if (words !== undefined) node.textContent = words;
    if (className) node.className = className;
    return node;
  }
  function number(value) {
    if (value === null) return NaN;
    return value === "inf" ? Infinity : value === "-inf" ? -Infinity : value === "nan" ? NaN : value;
  }
  // As people write it: 1.02e16 and 2.79e-5, and neither 10220000000000000 nor 0.0000279.
  function words(value) {
    if (typeof value !== "number" || value === 0) return String(value);
    var size = Math.abs(value);
    return size >= 1e-3 && size < 1e6 ? String(value) : value.toExponential().replace("e+", "e");
  }
  function shown(value) { return value === null ? "–" : words(value); }
  function repro(row) {
    return row[REPRO_END] < 0 ? text[row[REPRO]] : text[row[REPRO]] + text[row[CASE]] + text[row[REPRO_END]];
  }

  function haystack(row) {
    return (text[row[CASE]] + " " + text[row[SUITE]] + " " + text[row[BACKEND]] + " " + text[row[STATUS]] + " " +
            text[row[REASON]]).toLowerCase();
  }
  function kept(n) {
    var row = data.rows[n];
    if (state.backend && text[row[BACKEND]] !== state.backend) return false;
    if (state.status && text[row[STATUS]] !== state.status) return false;
    if (state.run && data.runs[runOf(n)][0] !== state.run) return false;
    if (state.only && text[row[CASE]] !== state.only) return false;
    if (!state.words.length) return true;
    var all = haystack(row);
    return state.words.every(function (word) { return all.indexOf(word) >= 0; });
  }
  // What has no number stands last, whichever way the column is sorted.
  function compare(a, b) {
    var column = columns[state.column], x = data.rows[a][column.key], y = data.rows[b][column.key], less;
    if (column.words) {
      less = text[x] < text[y] ? -1 : text[x] > text[y] ? 1 : 0;
    } else {
      x = number(x);
      y = number(y);
      if (isNaN(x) || isNaN(y)) return isNaN(x) && isNaN(y) ? a - b : isNaN(x) ? 1 : -1;
      less = x < y ? -1 : x > y ? 1 : 0;
    }
    return (state.down ? -less : less) || a - b;
  }

  function detail(list, name, value, code) {
    if (value === "" || value === null || value === undefined) return;
    list.appendChild(make("dt", name));
    var cell = make("dd");
    cell.appendChild(code ? make("code", String(value)) : document.createTextNode(String(value)));
    if (code) addCopyButton(cell.firstChild);
    list.appendChild(cell);
  }
  function details(n) {
    var row = data.rows[n];
    var line = make("tr", undefined, "details"), cell = make("td"), list = make("dl"), worst = row[WORST];
    cell.colSpan = columns.length;
    detail(list, "reason", text[row[REASON]]);
    detail(list, "waiver", text[row[WAIVER]]);
    if (worst) {
      detail(list, "worst element", text[worst[0]] + "[" + worst.slice(1, 5).join(",") + "] = " + words(worst[5]) +
             ", expected " + words(worst[6]) + " within " + words(worst[7]));
    }
    detail(list, "error over deviation", row[SIGMA] === null ? null : words(row[SIGMA]));
    detail(list, "ulps of o", row[ULPS] === null ? null : "median " + words(row[ULPS]) + ", largest " + words(row[MOST_ULPS]));
    detail(list, "rows compared", row[CHECKED] + " of " + row[ROWS]);
    if (several) detail(list, "run", data.runs[runOf(n)][0]);
    detail(list, "repeat it", repro(row), true);
    cell.appendChild(list);
    var link = make("a", "Link to this case");
    link.href = address({case: text[row[CASE]], backend: text[row[BACKEND]]});
    cell.appendChild(link);
    line.appendChild(cell);
    return line;
  }
  function line(n) {
    var row = data.rows[n], tr = make("tr"), status = text[row[STATUS]];
    var bad = {fail: 1, crashed: 1, timeout: 1, flaky: 1, suspect: 1}[status] && !text[row[WAIVER]];
    tr.appendChild(make("td", marks[status] + " " + status, bad ? "bad" : status === "pass" ? "good" : "none"));
    tr.appendChild(make("td", text[row[BACKEND]]));
    tr.appendChild(make("td", text[row[SUITE]]));
    var cell = make("td"), open = make("button", undefined, "open");
    open.type = "button";
    open.setAttribute("aria-expanded", "false");
    open.appendChild(make("code", text[row[CASE]]));
    open.addEventListener("click", function () {
      var is = open.getAttribute("aria-expanded") === "true";
      open.setAttribute("aria-expanded", String(!is));
      if (is) tr.parentNode.removeChild(tr.nextSibling);
      else tr.parentNode.insertBefore(details(n), tr.nextSibling);
    });
    cell.appendChild(open);
    tr.appendChild(cell);
    tr.appendChild(make("td", shown(row[BOUND]), "number"));
    tr.appendChild(make("td", shown(row[SECONDS]), "number"));
    return tr;
  }

  function show() {
    var list = order.filter(kept).sort(compare), pages = Math.max(1, Math.ceil(list.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    var body = get("rows");
    body.textContent = "";
    list.slice(state.page * PAGE, (state.page + 1) * PAGE).forEach(function (n) { body.appendChild(line(n)); });
    get("count").textContent = list.length.toLocaleString("en") + " of " + data.rows.length.toLocaleString("en") + " results" +
                               (state.only ? " are of " + state.only + " " : "");
    if (state.only) {
      var all = make("button", "Show all");
      all.type = "button";
      all.addEventListener("click", function () { state.only = ""; show(); });
      get("count").appendChild(all);
    }
    keepAddress();
    get("page").textContent = "page " + (state.page + 1) + " of " + pages;
    get("previous").disabled = state.page === 0;
    get("next").disabled = state.page === pages - 1;
    columns.forEach(function (column, n) {
      var sorted = n === state.column ? (state.down ? "descending" : "ascending") : "none";
      column.head.setAttribute("aria-sort", sorted);
      column.arrow.textContent = sorted === "none" ? "" : state.down ? " ▼" : " ▲";
    });
  }

  // What is shown stands behind "#cases?": each part by its name, as in the query of an address.
  function address(parts) {
    var query = new URLSearchParams();
    Object.keys(parts).forEach(function (name) { if (parts[name]) query.set(name, parts[name]); });
    return "#cases" + (query.toString() ? "?" + query : "");
  }
  function keepAddress() {
    var sorted = state.column !== 4 || !state.down;
    var now = address({filter: state.filter.trim(), backend: state.backend, verdict: state.status, run: state.run, case: state.only,
                       sort: sorted ? columns[state.column].name : "", up: sorted && !state.down ? "1" : "",
                       page: state.page > 0 ? String(state.page + 1) : ""});
    if (now !== (location.hash || "#cases")) history.replaceState(null, "", now === "#cases" ? location.pathname + location.search : now);
  }
  function readAddress() {
    if (location.hash.indexOf("#cases?") !== 0) return false;
    var query = new URLSearchParams(location.hash.slice(7));
    var part = function (name) { return query.get(name) || ""; };
    setFilter(part("filter"));
    get("filter").value = state.filter;
    [["backend", "backend"], ["status", "verdict"], ["run", "run"]].forEach(function (pair) {
      get(pair[0]).value = part(pair[1]);
      state[pair[0]] = get(pair[0]).value;
    });
    state.only = part("case");
    var column = columns.findIndex(function (one) { return one.name === part("sort"); });
    state.column = column < 0 ? 4 : column;
    state.down = column < 0 || part("up") !== "1";
    state.page = Math.max(0, (parseInt(part("page"), 10) || 1) - 1);
    return true;
  }
  function setFilter(words) {
    state.filter = words;
    state.words = words.toLowerCase().split(/\s+/).filter(Boolean);
  }

  function choices(id, found) {
    var select = get(id), names = {};
    found.forEach(function (name) { names[name] = true; });
    Object.keys(names).sort().forEach(function (name) {
      var option = make("option", name);
      option.value = name;
      select.appendChild(option);
    });
    select.addEventListener("change", function () {
      state[id] = select.value;
      state.page = 0;
      show();
    });
  }

  columns.forEach(function (column, n) {
    var head = make("th", undefined, column.words ? "" : "number"), button = make("button", column.name);
    head.scope = "col";
    button.type = "button";
    column.head = head;
    column.arrow = make("span");
    column.arrow.setAttribute("aria-hidden", "true");
    button.appendChild(column.arrow);
    button.addEventListener("click", function () {
      state.down = state.column === n ? !state.down : !column.words;
      state.column = n;
      state.page = 0;
      show();
    });
    head.appendChild(button);
    get("heads").appendChild(head);
  });
  choices("backend", data.rows.map(function (row) { return text[row[BACKEND]]; }));
  choices("status", data.rows.map(function (row) { return text[row[STATUS]]; }));
  choices("run", data.runs.map(function (run) { return run[0]; }));
  get("run").parentNode.hidden = !several;
  get("filter").addEventListener("input", function () {
    setFilter(get("filter").value);
    state.page = 0;
    show();
  });
  document.querySelectorAll("code.case").forEach(function (code) {
    var link = make("a");
    link.href = address({case: code.textContent, backend: code.dataset.backend});
    code.parentNode.insertBefore(link, code);
    link.appendChild(code);
  });
  document.querySelector("#case-table form").addEventListener("submit", function (event) { event.preventDefault(); });
  get("previous").addEventListener("click", function () { state.page -= 1; show(); });
  get("next").addEventListener("click", function () { state.page += 1; show(); });
  function follow() {
    var there = readAddress();
    show();
    if (!there) return;
    get("cases").scrollIntoView();
    if (state.only && document.querySelector("#rows button.open")) document.querySelector("#rows button.open").click();
  }
  window.addEventListener("hashchange", follow);
  get("case-table").hidden = false;
  follow();
})();
