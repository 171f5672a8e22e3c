// Draws the figures of the page. Their colours are names of CSS variables, so that they follow the
// light, dark and print styles.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const boxes = [...document.querySelectorAll("[data-figure]")];
  // The printable width of an A4 page in CSS pixels.
  const paper = 690;
  let printing = false;

  const variable = /^var\((--[a-z0-9-]+)\)$/;
  function painted(value, style) {
    if (typeof value === "string") {
      const name = variable.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((v) => painted(v, style));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, painted(v, style)]));
    return value;
  }

  function legendSide(layout) {
    return layout.xaxis?.side === "top" ? { y: 0, yanchor: "top" } : { y: 1, yanchor: "bottom" };
  }

  // Leaves out ticks whose labels would cover each other in a narrow window. The tick at 1 stays.
  function thin(axis, pixels) {
    if (axis?.tickmode !== "array") return;
    const at = (value) => (axis.type === "log" ? Math.log10(value) : value);
    const places = axis.tickvals.map(at);
    const [low, high] = axis.range ?? [Math.min(...places), Math.max(...places)];
    const kept = [];
    const first = axis.tickvals.indexOf(1);
    for (const i of [first, ...places.keys()].filter((i, n) => i >= 0 && (n === 0 || i !== first))) {
      const room = 4 + 4 * String(axis.ticktext?.[i] ?? axis.tickvals[i]).length;
      const near = (j) => Math.abs(places[i] - places[j]) * pixels < 2 * room * (high - low);
      if (!kept.some(near)) kept.push(i);
    }
    const pick = (list) => list && list.filter((_, i) => kept.includes(i));
    Object.assign(axis, { tickvals: pick(axis.tickvals), ticktext: pick(axis.ticktext) });
  }

  function draw(box) {
    const figure = figures[Number(box.dataset.figure)];
    const style = getComputedStyle(root);
    const { data, layout } = painted({ data: figure.data, layout: figure.layout }, style);
    const fg = style.getPropertyValue("--fg").trim();
    const line = style.getPropertyValue("--line").trim();
    const bg = style.getPropertyValue("--bg").trim();
    const width = printing ? paper : box.clientWidth;
    const narrow = width < 560;
    const title = layout.xaxis?.title?.text;
    // A letter of the title is about 6 pixels wide; names beside the marks take about 160.
    const broken = title?.length * 6 > width - 170 ? title.replaceAll(" · ", "<br>") : title;
    if (narrow && title) layout.xaxis.title = { text: broken, font: { size: 11 } };
    thin(layout.xaxis, Math.max(width - 170, 100));
    const axis = { automargin: true, gridcolor: line, linecolor: line, zerolinecolor: line, fixedrange: false };
    const whole = {
      ...layout,
      height: figure.height,
      width,
      font: { family: "system-ui, sans-serif", size: narrow ? 11 : 13, color: fg },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 8, r: 12, t: 8, b: 40, ...layout.margin },
      hovermode: "closest",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: fg },
      hoverlabel: { bgcolor: bg, bordercolor: line, font: { color: fg, size: 13 }, align: "left" },
      // The axis is on the other side of the marks than the legend.
      legend: { orientation: "h", x: 0, xanchor: "left", ...legendSide(layout), ...layout.legend },
      // A finger scrolls the page; a mouse selects a range to look at closely.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      xaxis: { ...axis, tickangle: 0, ...layout.xaxis },
      yaxis: { ...axis, ...layout.yaxis },
    };
    Plotly.react(box, data, whole, {
      displaylogo: false,
      plotlyServerURL: "",
      // Other buttons are left out. One of them sends the data to a service.
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
      toImageButtonOptions: { format: "svg", filename: "thalweg" },
    });
    box.dataset.drawn = "yes";
  }

  const folded = (box) => box.closest("details:not([open])") !== null;
  const redraw = () => boxes.filter((box) => box.dataset.drawn).forEach(draw);

  // Everything that is not folded away is drawn before the page counts as loaded, for pictures and
  // prints of the page are taken then. The rest is drawn when it is unfolded.
  const resized = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const wide = Math.round(contentRect.width);
      if (printing || folded(target) || wide === 0 || wide === Number(target.dataset.wide)) continue;
      target.dataset.wide = wide;
      draw(target);
    }
  });
  for (const box of boxes) {
    box.style.height = `${figures[Number(box.dataset.figure)].height}px`;
    if (!folded(box)) {
      box.dataset.wide = box.clientWidth;
      draw(box);
    }
    resized.observe(box);
  }
  document.addEventListener(
    "toggle",
    (event) => {
      const inside = [...(event.target.querySelectorAll?.("[data-figure]") ?? [])];
      inside.filter((box) => !folded(box) && !box.dataset.drawn).forEach(draw);
    },
    true,
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  let closed = [];
  addEventListener("beforeprint", () => {
    printing = true;
    root.classList.add("print");
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((d) => (d.open = true));
    boxes.forEach(draw);
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.classList.remove("print");
    closed.forEach((d) => (d.open = false));
    boxes.filter((box) => !folded(box)).forEach(draw);
  });

  // The filter hides comparisons without the words.
  const filter = document.querySelector(".filter");
  const found = [...document.querySelectorAll("[data-find]")];
  const shown = filter?.querySelector("output");
  if (filter) filter.hidden = false;
  filter?.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of found) item.hidden = !words.every((word) => item.dataset.find.includes(word));
    const sections = found.filter((item) => item.tagName === "SECTION");
    shown.textContent = `${sections.filter((s) => !s.hidden).length} of ${sections.length}`;
  });
})();
