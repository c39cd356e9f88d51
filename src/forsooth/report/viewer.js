// Maps, looked at closely: enlarged, side by side, sample by sample, with the value under the pointer in all of them.
const NO_MAP = -1, ZEROS = -2;
const viewer = one("#viewer");
const looking = { made: null, row: 0, sample: 0, pinned: new Set(), onlyPinned: false, outline: true, size: innerWidth < 640 ? 140 : 200, at: null };
const loaded = address => new Promise((done, failed) => {
  const image = new Image();
  image.onload = () => done(image);
  image.onerror = failed;
  image.src = address;
});
const addressOf = (made, what) => {
  const tile = one(`${what === "input" ? "i.in" : "i:not(.in)"}`, made.figure);
  return tile && getComputedStyle(tile).backgroundImage.slice(5, -2);
};
const pixelsOf = (image, made, tile) => {
  const [height, width] = made.shape, canvas = make("canvas", { width, height });
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  brush.drawImage(image, (tile % made.across) * width, Math.floor(tile / made.across) * height, width, height, 0, 0, width, height);
  return brush.getImageData(0, 0, width, height);
};
const galleries = all("figure.gallery").map(figure => ({ figure, ...JSON.parse(one(".gallery-data", figure).textContent) }));
const prepared = async made => {
  if (made.maps !== undefined) return;
  const addresses = [addressOf(made, "map"), addressOf(made, "input")];
  const [maps, inputs] = await Promise.all(addresses.map(address => (address ? loaded(address) : null)));
  Object.assign(made, { maps, inputs });
};

// A pixel's value is the place of its colour in the palette, as a share of the largest.
const palette = new Map();
FACTS_PALETTE.forEach(([red, green, blue], level) => palette.set((red << 16) | (green << 8) | blue, level / 255));
const shareAt = (pixels, x, y) => {
  const k = 4 * (y * pixels.width + x), colour = (pixels.data[k] << 16) | (pixels.data[k + 1] << 8) | pixels.data[k + 2];
  return palette.get(colour);
};
const valueAt = (tile, x, y) => {
  const share = shareAt(tile.pixels, x, y);
  if (tile.name === "input") return `pixel ${x}, ${y}`;
  if (tile.name === "truth") return share > 0.5 ? "matters" : "does not matter";
  return share === undefined ? "" : `${(100 * share).toFixed(0)} % of the largest, ${(share * tile.peak).toPrecision(3)}`;
};

const EDGE = 12; // canvas pixels for one of the map
const drawn = (tile, truth) => {
  const { pixels, canvas } = tile, brush = canvas.getContext("2d");
  const small = make("canvas", { width: pixels.width, height: pixels.height });
  small.getContext("2d").putImageData(pixels, 0, 0);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (truth && looking.outline && tile.name !== "truth") outlined(brush, truth, tile.scale);
  if (looking.at) {
    brush.strokeStyle = "#00e5ff";
    brush.lineWidth = 2;
    brush.strokeRect(looking.at.x * tile.scale, looking.at.y * tile.scale, tile.scale, tile.scale);
  }
};
const outlined = (brush, truth, scale) => {
  brush.strokeStyle = "#36d399";
  brush.lineWidth = 2;
  brush.beginPath();
  const inside = (x, y) => x >= 0 && y >= 0 && x < truth.width && y < truth.height && shareAt(truth, x, y) > 0.5;
  for (let y = 0; y < truth.height; y += 1) for (let x = 0; x < truth.width; x += 1) {
    if (!inside(x, y)) continue;
    const left = x * scale, top = y * scale, right = left + scale, foot = top + scale;
    if (!inside(x - 1, y)) { brush.moveTo(left, top); brush.lineTo(left, foot); }
    if (!inside(x + 1, y)) { brush.moveTo(right, top); brush.lineTo(right, foot); }
    if (!inside(x, y - 1)) { brush.moveTo(left, top); brush.lineTo(right, top); }
    if (!inside(x, y + 1)) { brush.moveTo(left, foot); brush.lineTo(right, foot); }
  }
  brush.stroke();
};
const tilesOf = (made, sample) => {
  const choice = wanted();
  return made.columns.map((name, k) => ({ name, tile: sample.tiles[k], peak: Number(sample.peaks[k]) }))
    .filter(({ name, tile }) => tile !== NO_MAP && (!FACTS[name] || choice.method(name)));
};
const canvasOf = (made, tile, tiles, truth) => {
  const image = tile.name === "input" ? made.inputs : made.maps;
  tile.pixels = pixelsOf(image, made, tile.tile);
  tile.scale = Math.max(1, Math.round((EDGE * 28) / Math.max(...made.shape)));
  tile.canvas = make("canvas", { width: made.shape[1] * tile.scale, height: made.shape[0] * tile.scale });
  tile.canvas.addEventListener("pointermove", event => {
    const box = tile.canvas.getBoundingClientRect();
    const place = (at, from, extent, count) => Math.min(count - 1, Math.max(0, Math.floor(((at - from) / extent) * count)));
    point({ x: place(event.clientX, box.left, box.width, made.shape[1]), y: place(event.clientY, box.top, box.height, made.shape[0]) }, tiles, truth());
  });
  tile.canvas.addEventListener("pointerleave", () => point(null, tiles, truth()));
};
const point = (at, tiles, truth) => {
  looking.at = at;
  for (const tile of tiles) {
    if (!tile.pixels) continue;
    drawn(tile, truth);
    tile.value.textContent = at ? valueAt(tile, at.x, at.y) : tile.words;
  }
};
const shownTile = (made, tile, tiles, truth) => {
  tile.words = tile.tile === ZEROS ? "a map of zeros" : tile.peak ? `largest ${tile.peak.toPrecision(3)}` : "";
  tile.value = make("output", {}, tile.words);
  const button = make("button", { type: "button", title: `${tile.name}: press to keep it for comparison` }, make("b", {}, tile.name));
  button.setAttribute("aria-pressed", String(looking.pinned.has(tile.name)));
  if (tile.tile !== ZEROS) {
    canvasOf(made, tile, tiles, truth);
    button.append(tile.canvas);
  }
  button.append(tile.value);
  button.addEventListener("click", () => {
    if (!looking.pinned.delete(tile.name)) looking.pinned.add(tile.name);
    show().then(() => all(".viewer-maps button", viewer).find(other => one("b", other).textContent === tile.name)?.focus());
  });
  return button;
};
const show = async () => {
  const { made } = looking;
  await prepared(made);
  looking.row = (looking.row + made.rows.length) % made.rows.length;
  const row = made.rows[looking.row];
  looking.sample = (looking.sample + row.samples.length) % row.samples.length;
  const sample = row.samples[looking.sample];
  looking.at = null;
  let tiles = tilesOf(made, sample);
  if (looking.onlyPinned && looking.pinned.size) tiles = tiles.filter(({ name }) => looking.pinned.has(name) || name === "input" || name === "truth");
  const truth = () => tiles.find(({ name }) => name === "truth")?.pixels;
  one("#viewer-title").textContent = row.name;
  one("#viewer-place").textContent = `panel ${looking.row + 1} of ${made.rows.length}, sample ${looking.sample + 1} of ${row.samples.length}${sample.label === "" ? "" : `, class ${sample.label}`}`;
  const wall = one(".viewer-maps", viewer);
  wall.style.setProperty("--size", `${looking.size}px`);
  wall.replaceChildren(...tiles.map(tile => shownTile(made, tile, tiles, truth)));
  for (const tile of tiles) if (tile.pixels) drawn(tile, truth());
};
const step = (rows, samples) => { looking.row += rows; looking.sample = rows ? 0 : looking.sample + samples; show(); };
const control = (words, act) => {
  const button = make("button", { type: "button" }, words);
  button.addEventListener("click", act);
  return button;
};
const toggle = (words, name) => {
  const box = make("input", { type: "checkbox", checked: looking[name] });
  box.addEventListener("change", () => { looking[name] = box.checked; show(); });
  return make("label", {}, box, ` ${words}`);
};
const furnish = () => {
  const size = make("input", { type: "range", min: 90, max: 520, value: looking.size });
  size.addEventListener("input", () => { looking.size = Number(size.value); one(".viewer-maps", viewer).style.setProperty("--size", `${looking.size}px`); });
  const close = control("Close", () => viewer.close());
  viewer.append(
    make("div", { className: "viewer-head" },
      make("h2", { id: "viewer-title" }), make("span", { id: "viewer-place" }),
      control("← sample", () => step(0, -1)), control("sample →", () => step(0, 1)), control("↑ panel", () => step(-1, 0)), control("panel ↓", () => step(1, 0)),
      make("label", {}, "Size ", size), toggle("outline the truth", "outline"), toggle("only those pressed", "onlyPinned"), close),
    make("div", { className: "viewer-maps" }));
  one("#viewer-place").setAttribute("aria-live", "polite");
  viewer.addEventListener("keydown", event => {
    const turns = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!turns || event.target.matches("input")) return;
    event.preventDefault();
    step(...turns);
  });
};
const look = (made, row) => {
  if (!viewer.children.length) furnish();
  Object.assign(looking, { made, row, sample: 0 });
  show().then(() => viewer.showModal());
};
for (const made of galleries) {
  all("tbody tr", made.figure).forEach((row, k) => {
    const button = make("button", { type: "button", className: "look" }, "look closer");
    button.setAttribute("aria-label", `Look closer at ${made.rows[k].name}`);
    button.addEventListener("click", () => look(made, k));
    one("th", row).append(button);
    row.addEventListener("click", event => {
      if (event.target.tagName !== "I") return;
      const column = event.target.closest("td").cellIndex - 1;
      looking.pinned.add(made.columns[column]);
      look(made, k);
    });
  });
}
