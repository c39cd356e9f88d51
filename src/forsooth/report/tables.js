// Tables: sorted by any heading, columns chosen, copied and saved as csv, LaTeX or Markdown.
const valueOf = (row, column) => { const cell = row.cells[column]; return cell.dataset.sort ?? cell.textContent.trim(); };
const NOTHING = new Set(["", "–", "?", "nan"]);
const compare = (x, y) => {
  const m = parseFloat(x), n = parseFloat(y);
  return isNaN(m) || isNaN(n) ? (isNaN(m) ? 1 : 0) - (isNaN(n) ? 1 : 0) || x.localeCompare(y) : m - n;
};
const sorted = (rows, column, turn) => rows.map(row => ({ row, value: valueOf(row, column) })).sort((a, b) => {
  const lacking = NOTHING.has(a.value) - NOTHING.has(b.value); // last, whichever way
  return lacking || turn * compare(a.value, b.value);
}).map(({ row }) => row);
const TURNS = { none: "ascending", ascending: "descending", descending: "none" };
const sort = head => {
  const table = head.closest("table"), body = table.tBodies[0];
  table.asMade ??= [...body.rows];
  const way = TURNS[head.getAttribute("aria-sort") ?? "none"];
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  table.classList.toggle("resorted", way !== "none");
  for (const row of table.asMade) {
    row.dataset.starts ??= row.classList.contains("starts") ? "1" : "";
    row.classList.toggle("starts", way === "none" && row.dataset.starts === "1");
  }
  if (way !== "none") head.setAttribute("aria-sort", way);
  body.append(...(way === "none" ? table.asMade : sorted(table.asMade, head.cellIndex, way === "ascending" ? 1 : -1)));
};
for (const head of all("table.sortable thead th")) {
  const button = make("button", { type: "button", className: "sort" });
  button.append(...head.childNodes);
  head.append(button);
}
document.addEventListener("click", event => {
  const button = event.target.closest("button.sort");
  if (button) sort(button.parentElement);
});

// What is seen of a table: its headings and lines of text, without columns that are drawn or left out.
const contents = table => {
  const columns = [...table.tHead.rows[0].cells].filter(head => !head.classList.contains("off") && !head.classList.contains("bar"));
  const places = columns.map(head => head.cellIndex);
  const lines = [...table.tBodies[0].rows].filter(row => !row.hidden);
  return { heads: columns.map(head => head.textContent.trim()), rows: lines.map(row => places.map(place => row.cells[place])) };
};
const PLAIN = /^[-+−]?[\d.,]+(e[-+]?\d+)?$/;
const plain = cell => cell.textContent.trim().replace(/\s+/g, " ");
const exact = cell => (cell.dataset.sort !== undefined && PLAIN.test(plain(cell)) ? cell.dataset.sort : plain(cell));
const quoted = words => (/[",\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
const TEX = { "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", $: "\\$", "#": "\\#", _: "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$", "○": "$\\circ$", "α": "$\\alpha$", "∞": "$\\infty$", "×": "$\\times$" };
const tex = words => words.replace(/[\\&%$#_{}~^–−○α∞×]/g, sign => TEX[sign]);
const FORMATS = {
  csv: { ending: "csv", write: ({ heads, rows }) => [heads, ...rows.map(row => row.map(exact))].map(line => line.map(quoted).join(",")).join("\n") + "\n" },
  LaTeX: {
    ending: "tex",
    write: ({ heads, rows }) => {
      const line = cells => `${cells.map(tex).join(" & ")} \\\\`;
      return [`\\begin{tabular}{l${"r".repeat(Math.max(0, heads.length - 1))}}`, "\\toprule", line(heads), "\\midrule", ...rows.map(row => line(row.map(plain))), "\\bottomrule", "\\end{tabular}", ""].join("\n");
    },
  },
  Markdown: {
    ending: "md",
    write: ({ heads, rows }) => {
      const line = cells => `| ${cells.map(words => words.replaceAll("|", "\\|")).join(" | ")} |`;
      return [line(heads), line(heads.map(() => "---")), ...rows.map(row => line(row.map(plain))), ""].join("\n");
    },
  },
};
const save = (name, words) => {
  const address = URL.createObjectURL(new Blob([words], { type: "text/plain" }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};
const showColumn = (table, head, shown) => {
  head.dataset.hidden = shown ? "" : "1";
  for (const row of table.rows) row.cells[head.cellIndex]?.classList.toggle("off", !shown || head.dataset.gone === "1");
};
const choices = table => {
  const heads = [...table.tHead.rows[0].cells].filter(head => !head.classList.contains("text") || head.cellIndex > 1);
  const boxes = heads.map(head => {
    const box = make("input", { type: "checkbox", checked: head.dataset.hidden !== "1" });
    box.addEventListener("change", () => showColumn(table, head, box.checked));
    return make("label", {}, box, ` ${head.textContent.trim()}`);
  });
  return make("fieldset", {}, make("legend", {}, "Columns"), ...boxes);
};
const outlets = table => Object.entries(FORMATS).map(([name, format]) => {
  const file = `${(table.dataset.title ?? "table").replace(/[^\w]+/g, "-").toLowerCase()}.${format.ending}`;
  const group = make("fieldset", {}, make("legend", {}, name));
  const copying = make("button", { type: "button" }, "Copy");
  copying.addEventListener("click", () => copy(format.write(contents(table)), name));
  const saving = make("button", { type: "button" }, "Download");
  saving.addEventListener("click", () => save(file, format.write(contents(table))));
  for (const button of [copying, saving]) button.setAttribute("aria-label", `${button.textContent} as ${name}`);
  group.append(copying, " ", saving);
  return group;
});
for (const table of all("table.sortable")) {
  const tools = make("details", {}, make("summary", {}, "Copy, download, choose columns"));
  tools.addEventListener("toggle", () => {
    if (tools.open && tools.children.length === 1) tools.append(make("div", { className: "sheet" }, ...outlets(table), choices(table)));
  });
  table.closest(".scroll").before(make("div", { className: "tabletools" }, tools));
}
