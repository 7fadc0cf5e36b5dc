"use strict";
// All that comes from a database is put in with textContent, so that it is text and nothing else.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const blobs = data.blobs;
  document.getElementById("data").remove();
  const byId = (id) => document.getElementById(id);
  const [main, search, count, sort] = ["main", "search", "count", "sort"].map(byId);
  const ROW = 52, VERSION_ROW = 46, WINDOW = 60, FOUND = 500;
  const STATES = ["stopped", "unknown", "repairing", "copying", "waiting", "behind", "no targets", "up to date", "dropped"];
  const WHAT = { born: "added", renamed: "renamed", retyped: "type changed", gone: "dropped" };

  function make(tag, content, className) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (content !== undefined && content !== null) made.append(...[content].flat().map((each) => typeof each === "number" ? String(each) : each));
    return made;
  }
  function svg(tag, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  const time = (us) => us ? new Date(us / 1000).toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z") : "";
  const number = (value) => value === null || value === undefined ? "" : value.toLocaleString("en");
  function size(bytes) {
    if (bytes === null || bytes === undefined) return "";
    const units = ["B", "kB", "MB", "GB", "TB"];
    let at = 0;
    while (bytes >= 1000 && at < units.length - 1) { bytes /= 1000; at += 1; }
    return `${at && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
  }
  const side = (value) => value === null ? "" : Array.isArray(value) ? value.join(", ") : value === true ? "yes" : value === false ? "no" : String(value);
  const stateClass = (state) => `state ${state.split(" ")[0]}`;

  // ---- timelines, each unpacked when it is first looked at; a few stay
  const unpacked = new Map();
  async function timeline(index) {
    if (!unpacked.has(index)) {
      const bytes = Uint8Array.from(atob(blobs[index]), (each) => each.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      const found = JSON.parse(await new Response(stream).text());
      if (unpacked.size > 20) unpacked.delete(unpacked.keys().next().value);
      unpacked.set(index, found);
    }
    return unpacked.get(index);
  }

  // ---- a list that has elements only for the rows that are seen
  class List {
    constructor(element, height, render, choose) {
      Object.assign(this, { element, height, render, choose, length: 0, at: -1, first: -1 });
      this.inner = make("div");
      this.inner.setAttribute("role", "presentation");
      element.replaceChildren(this.inner);
      element.addEventListener("scroll", () => this.draw(false));
      element.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.draw(true)).observe(element);
    }
    set(length, at) {
      this.length = length;
      this.at = at;
      this.inner.style.height = `${length * this.height}px`;
      if (at >= 0) this.reveal(); else this.element.scrollTop = 0;
      this.draw(true);
    }
    draw(always) {
      const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 4);
      if (!always && first === this.first) return;
      this.first = first;
      const last = Math.min(this.length, first + Math.ceil(this.element.clientHeight / this.height) + 9);
      const rows = [];
      for (let i = first; i < last; i += 1) {
        const row = this.render(i);
        row.className = "row";
        row.id = `${this.element.id}-${i}`;
        row.setAttribute("role", "option");
        row.setAttribute("aria-selected", String(i === this.at));
        row.setAttribute("aria-setsize", String(this.length));
        row.setAttribute("aria-posinset", String(i + 1));
        row.style.top = `${i * this.height}px`;
        row.style.height = `${this.height}px`;
        row.addEventListener("click", () => this.move(i));
        rows.push(row);
      }
      this.inner.replaceChildren(...rows);
      if (this.at >= first && this.at < last) this.element.setAttribute("aria-activedescendant", `${this.element.id}-${this.at}`);
      else this.element.removeAttribute("aria-activedescendant");
    }
    reveal() {
      const top = this.at * this.height;
      if (top < this.element.scrollTop) this.element.scrollTop = top;
      else if (top + this.height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + this.height - this.element.clientHeight;
    }
    move(to) {
      if (!this.length) return;
      this.at = Math.min(this.length - 1, Math.max(0, to));
      this.reveal();
      this.draw(true);
      this.choose(this.at);
    }
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
      const steps = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.length - 1, Enter: this.at };
      if (!(event.key in steps)) return;
      event.preventDefault();
      this.move(steps[event.key]);
    }
  }

  // ---- tables
  let shown = [];      // indexes of tables, as they are listed
  let found = null;    // statements that were searched: rows of table's index, version's index, statement
  let open = null;     // { index, versions, lanes, states, at, list }
  const words = data.tables.map((table) => [table.name, ...table.names, ...table.columns, table.state].join("\n").toLowerCase());

  const tables = new List(byId("tables"), ROW, (i) => {
    if (found) {
      const [index, at, statement, versionNumber] = found[i];
      return row(data.tables[index].name, `version ${versionNumber}`, "state", statement);
    }
    const table = data.tables[shown[i]];
    const behind = table.behind ? `, ${number(table.behind)} transactions behind` : "";
    const sub = `${number(table.versions)} versions, ${number(table.now)} columns${table.bytes === null ? "" : `, ${size(table.bytes)}`}${behind}${table.reason ? `: ${table.reason}` : ""}`;
    return row(table.name, table.state, stateClass(table.state), sub);
  }, (i) => found ? go(found[i][0], found[i][1]) : go(shown[i], null));

  function row(name, state, className, sub) {
    const made = make("div");
    made.append(make("div", [make("span", name, "name"), make("span", state, className)], "top"), make("div", sub, "sub"));
    made.title = name;
    return made;
  }
  const ORDERS = {
    state: (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || (a.name < b.name ? -1 : 1),
    name: (a, b) => a.name < b.name ? -1 : 1,
    last: (a, b) => b.last_us - a.last_us,
    versions: (a, b) => b.versions - a.versions,
    bytes: (a, b) => (b.bytes || 0) - (a.bytes || 0),
  };
  function list() {
    found = null;
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = data.tables.map((_, index) => index).filter((index) => wanted.every((word) => words[index].includes(word)));
    shown.sort((a, b) => ORDERS[sort.value](data.tables[a], data.tables[b]) || a - b);
    const all = data.tables.length + data.left_out;
    count.textContent = shown.length === all ? `${number(all)} tables` : `${number(shown.length)} of ${number(all)} tables`;
    tables.set(shown.length, open ? shown.indexOf(open.index) : -1);
  }
  let searches = 0;
  async function searchStatements() {
    const text = search.value.trim().toLowerCase(), mine = searches += 1, hits = [];
    if (!text) return;
    for (let index = 0; index < blobs.length && hits.length < FOUND; index += 1) {
      if (index % 25 === 0) {
        count.textContent = `searching statements: ${number(index)} of ${number(blobs.length)} tables`;
        await new Promise((done) => setTimeout(done));
      }
      const line = await timeline(index);
      if (mine !== searches) return;
      line.versions.forEach((version, at) => {
        if (hits.length < FOUND && (version[2].toLowerCase().includes(text) || version[3].toLowerCase().includes(text))) hits.push([index, at, version[2], version[0]]);
      });
    }
    found = hits;
    count.textContent = `${number(hits.length)}${hits.length === FOUND ? " or more" : ""} statements`;
    tables.set(hits.length, -1);
  }

  // ---- where one is: the part of the address behind #
  function go(index, at, replace) {
    const table = data.tables[index];
    const parts = new URLSearchParams({ table: table.name });
    if (data.tables.filter((other) => other.name === table.name).length > 1) parts.set("id", table.id);
    if (at !== null) parts.set("version", open && open.index === index ? open.versions[at][0] : found ? found.find((hit) => hit[0] === index && hit[1] === at)[3] : "");
    const hash = `#${parts}`;
    if (location.hash === hash) { follow(); return; }
    if (replace) { history.replaceState(null, "", hash); follow(); } else location.hash = hash;
  }
  let visits = 0;
  async function follow() {
    const mine = visits += 1;
    const parts = new URLSearchParams(location.hash.slice(1));
    const name = parts.get("table");
    if (name === null) { open = null; overview(); list(); return; }
    const id = Number(parts.get("id"));
    let index = data.tables.findIndex((table) => id ? table.id === id : table.name === name && table.state !== "dropped");
    if (index < 0) index = data.tables.findIndex((table) => table.name === name);
    if (index < 0) index = data.tables.findIndex((table) => table.names.includes(name));
    if (index < 0) { open = null; overview(`There is no captured table ${name}${data.left_out ? " among those that are listed" : ""}.`); return; }
    const wanted = Number(parts.get("version"));
    if (!open || open.index !== index) {
      const line = await timeline(index);
      if (mine !== visits) return;  // one went on while it was unpacked
      open = { index, ...line, at: line.versions.length - 1 };
      drawTable();
      if (!found) { const at = shown.indexOf(index); tables.at = at; if (at >= 0) tables.reveal(); tables.draw(true); }
    }
    const at = wanted ? open.versions.findIndex((version) => version[0] === wanted) : open.versions.length - 1;
    choose(at < 0 ? open.versions.length - 1 : at);
  }

  // ---- parts of the main half
  function grid(headings, rows, label) {
    const head = make("tr", headings.map((heading) => { const th = make("th", heading); th.scope = "col"; return th; }));
    const body = rows.map((cells) => make("tr", cells.map((cell) => cell instanceof Node ? make("td", cell) : make("td", typeof cell === "number" ? number(cell) : cell, typeof cell === "number" ? "number" : String(cell).length > 40 ? "wide" : ""))));
    const made = make("table", [make("thead", head), make("tbody", body)]);
    made.setAttribute("aria-label", label);
    const around = make("div", made, "scroll");
    around.tabIndex = 0;
    around.setAttribute("role", "region");
    around.setAttribute("aria-label", label);
    return around;
  }
  function facts(pairs) {
    return make("dl", pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined).flatMap(([name, value]) => [make("dt", name), make("dd", value)]));
  }
  function section(title, content) { return [make("h3", title), ...[content].flat()]; }

  function overview(problem) {
    document.title = `${data.connector} · historian`;
    const states = STATES.map((state) => [state, data.tables.filter((table) => table.state === state).length]).filter(([, n]) => n);
    const parts = [make("h2", data.connector)];
    if (problem) parts.push(make("p", problem, "note"));
    if (data.left_out) parts.push(make("p", `${number(data.tables.length)} of ${number(data.tables.length + data.left_out)} captured tables are listed: first those that are not up to date, then those that changed last. \`historian page\` lists all.`, "note"));
    parts.push(facts([
      ["source", data.source], ["sinks", data.sinks.join(", ")], ["tables", states.map(([state, n]) => `${number(n)} ${state}`).join(", ") || "none yet"],
      ["last plan", data.plan ? `${data.plan.number}, made ${data.plan.made}, to ${data.plan.end}` : "none yet"], ["tracked to", data.tracked],
      ["behind", data.lag], ["log", data.kept_s === null ? "" : `kept by the source for ${number(data.kept_s)} s; what is behind the last plan for ${number(data.left_s)} s more`],
      ["history", `${number(data.entries)} entries${data.horizon ? `; what was before ${data.horizon} is forgotten` : ""}`], ["as of", data.made],
    ]));
    parts.push(...data.warnings.map((text) => make("p", text, "note warn")), ...data.notes.map((text) => make("p", text, "note warn")));
    if (data.stopped.length) parts.push(...section("Quarantined tables", grid(["table", "at", "reason"], data.stopped.map((each) => [each.table, each.position, each.reason]), "Quarantined tables")));
    if (data.gaps.length) parts.push(...section("Gaps: log that was not read", grid(["from", "to", "reason"], data.gaps, "Gaps")));
    const copies = data.copies.filter((each) => each.state !== "done");
    if (copies.length) parts.push(...section("Copies", grid(["table", "state", "rows", "of about", "size", "of about", "seconds left", "begun"], copies.map((each) => [each.table, each.state, each.rows, each.estimate ?? "", size(each.bytes), size(each.estimated_bytes), each.left_s ?? "", each.begun]), "Copies")));
    if (data.unread) parts.push(make("p", data.unread, "note warn"));
    if (data.repairs.length) parts.push(...section("Repairs", repairsTable(data.repairs)));
    if (data.cut) {
      parts.push(...section("Cut: what all targets hold", facts([["position", data.cut.position], ["plan", String(data.cut.plan)], ["targets", `${number(data.cut.targets)} hold it`], ["left out", data.cut.left_out.join(", ")]])));
      parts.push(make("p", "`historian cut` gives the Delta version of each table there.", "dim"));
    }
    const last = data.tables.map((table, index) => [table, index]).sort((a, b) => b[0].last_us - a[0].last_us).slice(0, 10);
    if (last.length) parts.push(...section("Changed last", grid(["table", "time", "versions"], last.map(([table, index]) => { const link = make("a", table.name); link.href = `#${new URLSearchParams({ table: table.name, id: table.id })}`; return [link, time(table.last_us), table.versions]; }), "Tables that changed last")));
    main.replaceChildren(...parts);
    main.scrollTop = 0;
  }
  function repairsTable(rows) {
    return grid(["table", "plan", "time", "reason", "rows read", "appended", "retracted", "corrected"], rows.map((each) => [each.table, each.plan, each.system_time, each.reason, each.rows_read, each.appended, each.retracted, each.corrected]), "Repairs");
  }

  function drawTable() {
    const table = data.tables[open.index];
    document.title = `${table.name} · ${data.connector} · historian`;
    const parts = [make("h2", table.name), make("p", [make("span", table.state, stateClass(table.state)), ` · ${number(table.versions)} versions · ${number(table.now)} columns now`], "dim")];
    if (table.reason) parts.push(make("p", table.reason, "note"));
    if (table.names.length) parts.push(make("p", `Formerly ${table.names.join(", ")}`, "dim"));
    parts.push(...section("Columns over versions", []));
    open.picture = make("div", undefined, "picture");
    open.picture.tabIndex = 0;
    open.picture.setAttribute("role", "region");
    open.picture.setAttribute("aria-label", "Columns over versions; the list of versions below says the same in words");
    open.range = make("div", undefined, "bar");
    parts.push(legend(), open.range, open.picture);
    parts.push(...section("Versions", []));
    const versions = make("div", undefined, "list");
    versions.id = "versions";
    versions.tabIndex = 0;
    versions.setAttribute("role", "listbox");
    versions.setAttribute("aria-label", "Versions, the newest first");
    open.detail = make("section");
    open.detail.id = "detail";
    open.detail.setAttribute("aria-live", "polite");
    parts.push(versions, open.detail);
    const mine = data.repairs.filter((each) => each.table === table.name);
    if (mine.length) parts.push(...section("Repairs", repairsTable(mine)));
    if (table.targets.length) parts.push(...section("Targets", grid(["target", "kind", "plan", "made", "Delta version", "files", "rows", "size", "state"], table.targets.map((each) => [each.target, each.kind, each.plan, each.made ?? "", each.version ?? "", each.files ?? "", each.rows ?? "", size(each.bytes), each.stopped || each.ended || (each.behind ? `${number(each.behind)} transactions behind` : "holds all")]), "Targets")));
    main.replaceChildren(...parts);
    main.scrollTop = 0;
    const total = open.versions.length, here = open;  // the list may draw itself once more when another table is open
    open.list = new List(versions, VERSION_ROW, (i) => {
      const version = here.versions[total - 1 - i];
      return row(`${version[0]} · ${told(version[6])}`, version[5] || "", "state", `${time(version[1])} · ${version[2] || "as captured"}`);
    }, (i) => go(here.index, total - 1 - i, true));
    open.list.set(total, 0);
  }
  function told(changes) {
    const texts = changes.slice(0, 3).map(([what, column, before, after]) => what === "renamed" ? `renamed ${side(before)} to ${side(after)}` : !column ? what : what === "added" || what === "dropped" ? `${what} ${column}` : `${what} of ${column}`);
    return (texts.join(", ") || "no change of columns") + (changes.length > 3 ? `, ${changes.length - 3} more` : "");
  }

  function choose(at) {
    if (open.at === at && open.chosen) return;
    open.at = at;
    open.chosen = true;
    const to = open.versions.length - 1 - at;
    if (open.list.at !== to) { open.list.at = to; }
    open.list.reveal();
    open.list.draw(true);
    drawPicture();
    const [versionNumber, us, statement, gtid, place, who, changes, name] = open.versions[at];
    const table = data.tables[open.index], state = open.states[at];
    const parts = [make("h3", `Version ${versionNumber}`), facts([["table", name], ["time", time(us)], ["written by", who], ["position", place], ["GTID", gtid]])];
    if (state !== "known" && state !== "gone") parts.push(make("p", state, "note"));
    parts.push(make("pre", statement || "captured: no statement"));
    parts.push(changes.length ? grid(["change", "column", "before", "after"], changes.map(([what, column, before, after]) => [what, column ?? "", side(before), side(after)]), "What changed") : make("p", "No change of columns, keys or names.", "dim"));
    const decision = decided(table, versionNumber);
    if (decision) parts.push(facts([["evolution", decision]]));
    if (table.targets.length) parts.push(grid(["target", "kind", "what it did with this version"], table.targets.map((each) => [each.target || "none", each.kind, didWith(each, versionNumber)]), "What targets did with this version"));
    open.detail.replaceChildren(...parts);
  }
  function didWith(target, versionNumber) {
    if (target.holds !== null && target.holds >= versionNumber) return "holds what was written under it";
    if (target.stopped_in) {
      if (target.stopped_upto === null || target.holds === null) return `stopped in plan ${target.stopped_in}, which is forgotten: ${target.stopped}`;
      if (versionNumber > target.stopped_upto) return `nothing: it had stopped in plan ${target.stopped_in}`;
      return `stopped in plan ${target.stopped_in}, which brought this version: ${target.stopped}`;
    }
    if (target.stopped) return `stopped: ${target.stopped}`;
    if (target.ended) return `nothing: ${target.ended}`;
    return target.holds === null ? `not known: plan ${target.plan}, which it holds, is forgotten` : `nothing yet: it holds plan ${target.plan}`;
  }
  function decided(table, versionNumber) {
    const made = table.decisions.filter(([version]) => version === versionNumber);
    const names = new Map(open.lanes.map(([id, ...parts]) => [id, parts.filter(([, name]) => name !== null).pop()[1]]));
    if (made.length) return made.map(([, column, edit, action]) => `${edit.replaceAll("_", " ")}${column ? ` of ${names.get(column) ?? column}` : ""}: ${action.replaceAll("_", " ")}`).join("; ");
    return table.decided_upto >= versionNumber ? "followed as it is" : "";
  }

  // ---- the picture: a lane for each column, by identity
  function mark(kind, x, y) {
    if (kind === "born") return svg("circle", { class: "mark born", cx: x, cy: y, r: 5 });
    if (kind === "renamed") return svg("path", { class: "mark renamed", d: `M${x - 6} ${y}l6 -6l6 6l-6 6z` });
    if (kind === "retyped") return svg("rect", { class: "mark retyped", x: x - 5, y: y - 5, width: 10, height: 10 });
    return svg("path", { class: "gone", d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` });
  }
  function legend() {
    return make("div", Object.entries(WHAT).map(([kind, text]) => {
      const drawn = svg("svg", { width: 14, height: 14, "aria-hidden": "true" });
      drawn.append(mark(kind, 7, 7));
      return make("span", [drawn, ` ${text}`]);
    }), "legend");
  }
  function drawPicture() {
    const total = open.versions.length;
    const first = Math.floor(open.at / WINDOW) * WINDOW;
    const last = Math.min(total, first + WINDOW);
    const lanes = open.lanes.filter(([, ...parts]) => parts[0][0] < last && (parts[parts.length - 1][1] !== null || parts[parts.length - 1][0] >= first));
    const label = open.picture.clientWidth < 500 ? 110 : 170, step = Math.max(16, Math.min(48, (open.picture.clientWidth - label - 24) / Math.max(1, last - first))), top = 26, height = 20;
    const x = (index) => (index - first + .5) * step;
    const width = (last - first) * step + 12, whole = top + lanes.length * height + 6;
    const labels = svg("svg", { width: label, height: whole, class: "labels", "aria-hidden": "true" });
    const drawn = svg("svg", { width, height: whole, role: "img", "aria-label": `${lanes.length} columns over versions ${open.versions[first][0]} to ${open.versions[last - 1][0]}` });
    drawn.append(svg("rect", { class: "at", x: x(open.at) - step / 2, y: 0, width: step, height: whole }));
    const every = Math.ceil(46 / step);
    for (let i = first; i < last; i += 1) {
      if ((i - first) % every === 0) drawn.append(svg("text", { class: "dim", x: x(i), y: 16, "text-anchor": "middle" }, String(open.versions[i][0])));
    }
    lanes.forEach(([id, ...parts], at) => {
      const y = top + at * height + height / 2;
      const inWindow = parts.filter(([from, name]) => from < last && name !== null);
      const current = inWindow.length ? inWindow[inWindow.length - 1] : parts[0];
      const name = svg("text", { x: 6, y: y + 4 }, current[1].length > label / 7.6 ? `${current[1].slice(0, Math.floor(label / 7.6) - 1)}…` : current[1]);
      name.append(svg("title", {}, `${current[1]} ${current[2]} (column ${id})`));
      labels.append(name);
      parts.forEach(([from, called], i) => {
        const to = i + 1 < parts.length ? parts[i + 1][0] : last - 1;
        if (called === null || to < first || from >= last) return;
        drawn.append(svg("line", { class: "lane", x1: x(Math.max(from, first)), y1: y, x2: Math.max(x(Math.max(from, first)) + .1, x(Math.min(to, last - 1))), y2: y }));
      });
      parts.forEach(([from, called, kind], i) => {
        if (from < first || from >= last) return;
        const before = parts[i - 1];
        const what = called === null ? "gone" : !before || before[1] === null ? "born" : before[1] !== called ? "renamed" : "retyped";
        drawn.append(mark(what, x(from), y));
        if (what === "renamed" && before[2] !== kind) drawn.append(mark("retyped", x(from) + 8, y));
      });
    });
    for (let i = first; i < last; i += 1) {
      const hit = svg("rect", { class: "hit", x: x(i) - step / 2, y: 0, width: step, height: whole, "data-version": open.versions[i][0] });
      hit.append(svg("title", {}, `${open.versions[i][0]}: ${told(open.versions[i][6])}`));
      hit.addEventListener("click", () => go(open.index, i, true));
      drawn.append(hit);
    }
    const scrolled = open.picture.scrollTop;
    open.picture.replaceChildren(labels, drawn);
    open.picture.scrollTop = scrolled;
    open.picture.scrollLeft = Math.max(0, x(open.at) - (open.picture.clientWidth - label) / 2);
    const buttons = [["Earlier", first - 1], ["Later", last]].map(([text, to]) => {
      const button = make("button", text);
      button.type = "button";
      button.disabled = to < 0 || to >= total;
      button.addEventListener("click", () => go(open.index, to, true));
      return button;
    });
    open.range.replaceChildren(make("span", `versions ${number(first + 1)} to ${number(last)} of ${number(total)}`), ...(total > WINDOW ? [make("span", buttons)] : []));
  }

  // ---- the page as a whole
  byId("home").textContent = data.connector;
  byId("facts").textContent = `${data.plan ? `plan ${data.plan.number} made ${data.plan.made}` : "no plan yet"} · ${data.lag_known ? `behind: ${data.lag}` : "how far behind is not known"} · as of ${data.made}`;
  if (data.live) {
    const again = make("button", "Look again");
    again.type = "button";
    again.addEventListener("click", () => location.reload());
    byId("facts").append(" ", again);
  }
  byId("home").addEventListener("click", () => { location.hash = ""; });
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  search.addEventListener("input", () => { searches += 1; list(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") searchStatements();
    if (event.key === "ArrowDown") { event.preventDefault(); tables.element.focus(); tables.move(Math.max(0, tables.at)); }
    if (event.key === "Escape") { search.value = ""; searches += 1; list(); }
  });
  sort.addEventListener("change", list);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const keys = { "/": () => { search.focus(); search.select(); }, t: () => tables.element.focus(), v: () => open && byId("versions").focus(), o: () => { location.hash = ""; } };
    if (event.key in keys) { event.preventDefault(); keys[event.key](); }
  });
  addEventListener("hashchange", follow);
  addEventListener("resize", () => { if (open && open.chosen) drawPicture(); });
  list();
  follow();
})();
