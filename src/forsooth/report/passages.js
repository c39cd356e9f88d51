// Texts in colour: stepped through document by document, with the value of the word under the pointer.
const KINDS = ["", "tells", "alike"];
const wordsOf = (written, shade) => written.words.flatMap((word, k) => {
  const level = shade?.[k] ?? 0, kind = KINDS[written.kinds[k]];
  if (!level && !kind) return [word, " "];
  const span = make("span", { className: kind }, word);
  if (level) span.style.setProperty("--w", level);
  return [span, " "];
});
const markOf = shade => (shade === null ? " –" : shade.some(Boolean) ? "" : " 0");
const showText = (table, written, shades) => [...table.tBodies[0].rows].forEach((row, k) => {
  const [head, cell] = row.cells;
  head.replaceChildren(one("a", head), markOf(shades[k]));
  cell.replaceChildren(...wordsOf(written, shades[k]));
  texts.delete(row); // what the search knows of it
});
for (const part of all("details.passages")) {
  const data = JSON.parse(one(".passage-data", part).textContent), table = one("table", part);
  const place = make("span"), told = make("output");
  place.setAttribute("aria-live", "polite");
  let current = 0;
  const sayPlace = () => {
    const { label } = data.texts[current];
    place.textContent = `text ${current + 1} of ${data.texts.length}${label === "" ? "" : `, class ${label}`}`;
  };
  const turn = by => {
    current = (current + by + data.texts.length) % data.texts.length;
    showText(table, data.texts[current], data.shades[current]);
    sayPlace();
    told.textContent = "";
  };
  table.addEventListener("pointerover", event => {
    const word = event.target.closest("td span");
    told.textContent = word ? `${word.textContent}: ${word.style.getPropertyValue("--w") || 0} % of the largest` : "";
  });
  const steps = make("div", { className: "steps" });
  if (data.texts.length > 1) steps.append(control("← text", () => turn(-1)), control("text →", () => turn(1)));
  steps.append(place, told);
  one(".scroll", part).before(steps);
  sayPlace();
}
