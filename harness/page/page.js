// The case table: filter, sort, pages, details. All text goes in as text.
"use strict";
(function () {
  var source = document.getElementById("data");
  if (!source) return;
  var data = JSON.parse(source.textContent);
  var text = data.strings;
  var PAGE = 50;

  // A row as the file has it: see case_table.cpp.
  var CASE = 0, SUITE = 1, BACKEND = 2, STATUS = 3, BOUND = 4, SIGMA = 5, REASON = 6, WAIVER = 7, WORST = 8,
      CHECKED = 9, ROWS = 10, SECONDS = 11, REPRO = 12, REPRO_END = 13, ULPS = 14, MOST_ULPS = 15;
  var columns = [
    {name: "verdict", key: STATUS, words: true},
    {name: "backend", key: BACKEND, words: true},
    {name: "suite", key: SUITE, words: true},
    {name: "case", key: CASE, words: true},
    {name: "error/bound", key: BOUND},
    {name: "run s", key: SECONDS}
  ];
  var marks = {pass: "✓", fail: "✗", crashed: "✗", timeout: "✗", suspect: "!", refused: "–", inconclusive: "?", convention: "✓", weak: "≈"};
  var state = {words: [], backend: "", status: "", column: 4, down: true, page: 0};
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
    list.appendChild(cell);
  }
  function details(row) {
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
    detail(list, "repeat it", repro(row), true);
    cell.appendChild(list);
    line.appendChild(cell);
    return line;
  }
  function line(n) {
    var row = data.rows[n], tr = make("tr"), status = text[row[STATUS]];
    var bad = {fail: 1, crashed: 1, timeout: 1, suspect: 1}[status] && !text[row[WAIVER]];
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
      else tr.parentNode.insertBefore(details(row), tr.nextSibling);
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
    get("count").textContent = list.length.toLocaleString("en") + " of " + data.rows.length.toLocaleString("en") + " results";
    get("page").textContent = "page " + (state.page + 1) + " of " + pages;
    get("previous").disabled = state.page === 0;
    get("next").disabled = state.page === pages - 1;
    columns.forEach(function (column, n) {
      var sorted = n === state.column ? (state.down ? "descending" : "ascending") : "none";
      column.head.setAttribute("aria-sort", sorted);
      column.arrow.textContent = sorted === "none" ? "" : state.down ? " ▼" : " ▲";
    });
  }

  function choices(id, key) {
    var select = get(id), names = {};
    data.rows.forEach(function (row) { names[text[row[key]]] = true; });
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
  choices("backend", BACKEND);
  choices("status", STATUS);
  get("filter").addEventListener("input", function () {
    state.words = get("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    state.page = 0;
    show();
  });
  document.querySelector("#case-table form").addEventListener("submit", function (event) { event.preventDefault(); });
  get("previous").addEventListener("click", function () { state.page -= 1; show(); });
  get("next").addEventListener("click", function () { state.page += 1; show(); });
  get("case-table").hidden = false;
  show();
})();
