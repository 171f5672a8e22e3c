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

  function draw(box) {
    const figure = figures[Number(box.dataset.figure)];
    const style = getComputedStyle(root);
    const { data, layout } = painted({ data: figure.data, layout: figure.layout }, style);
    const fg = style.getPropertyValue("--fg").trim();
    const line = style.getPropertyValue("--line").trim();
    const bg = style.getPropertyValue("--bg").trim();
    const narrow = !printing && box.clientWidth < 560;
    const title = layout.xaxis?.title?.text;
    if (narrow && title) layout.xaxis.title = { text: title.replaceAll(" · ", "<br>"), font: { size: 11 } };
    const axis = { automargin: true, gridcolor: line, linecolor: line, zerolinecolor: line, fixedrange: false };
    const whole = {
      ...layout,
      height: figure.height,
      width: printing ? paper : undefined,
      font: { family: "system-ui, sans-serif", size: narrow ? 11 : 13, color: fg },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 8, r: 12, t: 8, b: 40, ...layout.margin },
      hovermode: "closest",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: fg },
      hoverlabel: { bgcolor: bg, bordercolor: line, font: { color: fg, size: 13 }, align: "left" },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", ...layout.legend },
      // A finger scrolls the page; a mouse selects a range to look at closely.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      xaxis: { ...axis, tickangle: 0, ...layout.xaxis },
      yaxis: { ...axis, ...layout.yaxis },
    };
    Plotly.react(box, data, whole, {
      displaylogo: false,
      plotlyServerURL: "",
      responsive: true,
      // Other buttons are left out. One of them sends the data to a service.
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
      toImageButtonOptions: { format: "svg", filename: "thalweg" },
    });
    box.dataset.drawn = "yes";
  }

  const redraw = () => boxes.filter((box) => box.dataset.drawn).forEach(draw);

  // Each figure is drawn when it comes near the window, so that a page of many comparisons opens at
  // once.
  const near = new IntersectionObserver(
    (entries) => entries.filter((e) => e.isIntersecting && !e.target.dataset.drawn).forEach((e) => draw(e.target)),
    { rootMargin: "600px" },
  );
  for (const box of boxes) {
    box.style.height = `${figures[Number(box.dataset.figure)].height}px`;
    near.observe(box);
  }
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
    redraw();
  });
})();
