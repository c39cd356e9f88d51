"use strict";
// What the page does by itself: contents, links, filters, theme, print. It reads well without any of this.
const one = (what, where = document) => where.querySelector(what);
const all = (what, where = document) => [...where.querySelectorAll(what)];
const make = (tag, given = {}, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
};
const FACTS = JSON.parse(one("#facts").textContent);

let fading = 0;
const say = words => {
  const toast = one("#toast");
  toast.textContent = words;
  clearTimeout(fading);
  fading = setTimeout(() => { toast.textContent = ""; }, 2500);
};

// Theme: as the system says, until someone presses the switch. A file opened from disk may have no storage.
const remembered = {
  get: () => { try { return localStorage.getItem("forsooth-theme"); } catch { return null; } },
  set: value => { try { localStorage.setItem("forsooth-theme", value); } catch { say("This browser keeps no choice of theme."); } },
};
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
const showTheme = () => one("#theme").setAttribute("aria-pressed", String(isDark()));
if (remembered.get()) document.documentElement.dataset.theme = remembered.get();
one("#theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  remembered.set(document.documentElement.dataset.theme);
  showTheme();
});
system.addEventListener("change", showTheme);
showTheme();

// Contents: folded on a narrow screen; the section in view is marked.
const side = one("#side"), fold = one("#fold");
const setOpen = open => { side.classList.toggle("open", open); fold.setAttribute("aria-expanded", String(open)); };
fold.addEventListener("click", () => setOpen(!side.classList.contains("open")));
addEventListener("keydown", event => {
  if (event.key === "Escape" && side.classList.contains("open")) { setOpen(false); fold.focus(); }
});
const entries = all("nav a", side);
for (const entry of entries) entry.addEventListener("click", () => setOpen(false));
const places = entries.map(entry => document.getElementById(decodeURIComponent(entry.hash.slice(1))));
const mark = () => {
  let current = -1;
  places.forEach((place, k) => { if (place && place.getBoundingClientRect().top < innerHeight / 3) current = k; });
  entries.forEach((entry, k) => {
    if (k === current) entry.setAttribute("aria-current", "true");
    else entry.removeAttribute("aria-current");
  });
};
let waiting = false;
addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; mark(); });
}, { passive: true });

// A link to anything opens what it is folded into; pressing it copies it.
const arrive = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView({ behavior: "instant", block: target.closest("table") ? "center" : "start" });
};
addEventListener("hashchange", arrive);
const copy = async (words, what) => {
  try {
    await navigator.clipboard.writeText(words);
  } catch { // no permission, or no secure place: the older way
    const area = make("textarea", { value: words });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`${what} copied`);
};
document.addEventListener("click", event => {
  const link = event.target.closest("a.hash, th.name a");
  if (link && !event.ctrlKey && !event.metaKey) copy(link.href, "Link");
});

// Search and filters, for every table at once.
const filter = one("#filter");
const words = text => text.toLowerCase().split(/[\s,]+/).filter(Boolean);
const fill = (select, values) => [...new Set(values)].sort().forEach(value => select.append(make("option", { value }, value)));
fill(filter.elements.family, Object.values(FACTS).map(fact => fact.family));
fill(filter.elements.need, Object.values(FACTS).flatMap(fact => fact.needs));
const wanted = () => {
  const given = Object.fromEntries(new FormData(filter));
  const names = words(given.method), panel = words(given.panel);
  return {
    suite: given.suite ?? "", search: words(given.words), filtering: Object.values(given).some(Boolean),
    method: name => {
      const fact = FACTS[name] ?? { family: "", needs: [] };
      return (!names.length || names.some(part => name.toLowerCase().includes(part))) &&
        (!given.family || fact.family === given.family) && (!given.need || fact.needs.includes(given.need));
    },
    panel: name => panel.every(part => name.toLowerCase().includes(part)),
  };
};
const texts = new WeakMap();
const textOf = row => {
  if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
  return texts.get(row);
};
const filterTable = (table, choice, seen) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const gone = (head.dataset.p !== undefined && !choice.panel(head.dataset.p)) || (head.dataset.m !== undefined && FACTS[head.dataset.m] && !choice.method(head.dataset.m));
    if (gone === (head.dataset.gone === "1")) return;
    head.dataset.gone = gone ? "1" : "";
    for (const row of table.rows) row.cells[column]?.classList.toggle("off", gone || head.dataset.hidden === "1");
  });
  for (const row of table.tBodies[0].rows) {
    const { m, p } = row.dataset;
    const fits = (m === undefined || choice.method(m)) && (p === undefined || choice.panel(p)) &&
      choice.search.every(part => textOf(row).includes(part));
    row.hidden = !fits;
    seen.rows += 1;
    seen.shown += fits ? 1 : 0;
    if (m !== undefined && fits) seen.methods.add(m);
  }
};
const applyFilter = () => {
  const choice = wanted(), seen = { rows: 0, shown: 0, methods: new Set() };
  for (const table of all("main table")) filterTable(table, choice, seen);
  for (const run of all("article")) run.hidden = Boolean(choice.suite) && run.id !== choice.suite;
  one("#clear").hidden = !choice.filtering;
  one("#count").textContent = choice.filtering ? `${seen.shown.toLocaleString("en")} of ${seen.rows.toLocaleString("en")} rows, ${seen.methods.size} methods` : "";
};
let typing = 0;
filter.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(applyFilter, 120); });
filter.addEventListener("reset", () => setTimeout(applyFilter));
filter.addEventListener("submit", event => { event.preventDefault(); applyFilter(); });

// On paper everything is open.
addEventListener("beforeprint", () => all("main details").forEach(part => {
  if (!part.open) { part.dataset.folded = "1"; part.open = true; }
}));
addEventListener("afterprint", () => all("details[data-folded]").forEach(part => {
  part.open = false;
  delete part.dataset.folded;
}));
mark();
arrive();
