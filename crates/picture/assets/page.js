(() => {
  "use strict";
  const end = Number(document.body.dataset.end);
  const bar = document.querySelector(".controls");
  if (!bar || !(end > 0)) return;
  bar.hidden = false;
  const UNITS = 10000;
  // Above and below the data.
  const EDGE = 3;
  const unitOf = (end) => end >= 10000 ? ["s", 1000] : ["ms", 1];
  const [unit, perUnit] = unitOf(end);
  const NS = document.querySelector(".chart, .packets").namespaceURI;
  const charts = [...document.querySelectorAll(".chart[data-end]")].map((svg) => {
    const area = svg.querySelector(".area");
    const data = svg.querySelector(".data");
    const cursor = document.createElementNS(NS, "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y1", 0);
    const height = Number(data.getAttribute("height")) - 2 * EDGE;
    cursor.setAttribute("y2", height);
    area.append(cursor);
    const figure = svg.closest("figure");
    return {
      svg, data, cursor, height,
      end: Number(svg.dataset.end),
      ticks: svg.querySelector(".xticks"),
      outputs: [...figure.querySelectorAll(".legend output")],
      values: JSON.parse(figure.querySelector("script").textContent),
    };
  });
  const ladders = [...document.querySelectorAll(".ladder")].map((figure) => ({
    box: figure.querySelector(".rungs"),
    detail: figure.querySelector(".detail"),
    rungs: [...figure.querySelectorAll(".rung[data-at]")].map((g) => ({ g, at: Number(g.dataset.at) / 1000 })),
  }));
  const slider = document.getElementById("time");
  const moment = document.getElementById("moment");
  const play = document.getElementById("play");
  // What is shown, in shares of each graph's axis: a run that is over early has one of its own.
  let view = [0, 1];
  let now = end;

  const round = (value) => {
    const size = Math.abs(value);
    return String(Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)));
  };
  const ticks = (from, to) => {
    const rough = (to - from) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
    const all = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-6; n++) all.push([n * step, step]);
    return all;
  };
  const tickText = (value, step) => String(Number(value.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)))));

  function drawView() {
    for (const { data, ticks: group, height, end } of charts) {
      const [from, to] = view.map((share) => share * end);
      const perUnit = unitOf(end)[1];
      data.setAttribute("viewBox", `${view[0] * UNITS} ${-EDGE} ${(view[1] - view[0]) * UNITS} ${height + 2 * EDGE}`);
      group.replaceChildren(...ticks(from, to).flatMap(([value, step]) => {
        const x = `${((value - from) / (to - from)) * 100}%`;
        const line = document.createElementNS(NS, "line");
        for (const [name, is] of [["class", "grid"], ["x1", x], ["x2", x], ["y1", 0], ["y2", height]]) line.setAttribute(name, is);
        const text = document.createElementNS(NS, "text");
        for (const [name, is] of [["class", "tick"], ["x", x], ["y", height + 15], ["text-anchor", "middle"]]) text.setAttribute(name, is);
        text.textContent = tickText(value / perUnit, step / perUnit);
        return [line, text];
      }));
    }
    drawNow(false);
  }

  const valueAt = (points, at) => {
    let low = 0, high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= at) low = middle + 1; else high = middle;
    }
    return low ? points[low - 1][1] : undefined;
  };

  function drawNow(follow) {
    for (const { cursor, outputs, values, end: last } of charts) {
      const [from, to] = view.map((share) => share * last);
      const x = `${((now - from) / (to - from)) * 100}%`;
      const hidden = now < from || now > to || now === end;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.style.display = hidden ? "none" : "";
      outputs.forEach((output, n) => {
        const value = now === end ? undefined : valueAt(values[n] || [], now);
        output.textContent = value == null ? "" : round(value);
      });
    }
    for (const { box, detail, rungs } of ladders) {
      let last = null;
      for (const rung of rungs) {
        const later = rung.at > now + 1e-6;
        rung.g.classList.toggle("later", later);
        rung.g.classList.remove("now");
        if (!later) last = rung;
      }
      if (!follow) continue;
      if (last && now < end) {
        last.g.classList.add("now");
        detail.textContent = last.g.dataset.detail;
        const top = last.g.getBoundingClientRect().top - box.getBoundingClientRect().top;
        if (top < 0 || top > box.clientHeight - 50) box.scrollTop += top - box.clientHeight / 2;
      } else {
        detail.textContent = "";
      }
    }
    slider.value = Math.round((now / end) * 1000);
    slider.setAttribute("aria-valuetext", `${round(now / perUnit)} ${unit}`);
    moment.textContent = `${round(now / perUnit)} ${unit}`;
  }

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const setNow = (at) => { now = clamp(at, 0, end); drawNow(true); };
  function setView(from, to) {
    const span = clamp(to - from, 1 / 5000, 1);
    const start = clamp(from, 0, 1 - span);
    view = [start, start + span];
    drawView();
  }
  function zoom(factor, about) {
    const [from, to] = view;
    const share = now / end;
    const middle = about === undefined ? (share > from && share < to ? share : (from + to) / 2) : about;
    setView(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }
  const pan = (share) => { const by = (view[1] - view[0]) * share; setView(view[0] + by, view[1] + by); };

  const shareAt = (chart, clientX) => {
    const box = chart.data.getBoundingClientRect();
    return view[0] + ((clientX - box.left) / box.width) * (view[1] - view[0]);
  };
  const keys = { "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => setView(0, 1),
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15) };
  for (const chart of charts) {
    const { svg } = chart;
    svg.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
    });
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, shareAt(chart, event.clientX));
    }, { passive: false });
    svg.addEventListener("dblclick", () => setView(0, 1));
    let drag = null;
    svg.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, view: [...view], moved: false };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const by = event.clientX - drag.x;
      drag.moved ||= Math.abs(by) > 4;
      if (!drag.moved) return;
      const span = drag.view[1] - drag.view[0];
      const shift = (-by / chart.data.getBoundingClientRect().width) * span;
      setView(drag.view[0] + shift, drag.view[1] + shift);
    });
    svg.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) setNow(shareAt(chart, event.clientX) * chart.end);
      drag = null;
    });
    svg.addEventListener("pointercancel", () => { drag = null; });
  }
  for (const { detail, rungs } of ladders) {
    for (const { g, at } of rungs) {
      const tell = () => { detail.textContent = g.dataset.detail; };
      g.addEventListener("pointerenter", tell);
      g.addEventListener("focus", tell);
      g.addEventListener("click", () => setNow(at));
      g.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); setNow(at); } });
    }
  }
  document.getElementById("in").onclick = () => zoom(0.6);
  document.getElementById("out").onclick = () => zoom(1 / 0.6);
  document.getElementById("back").onclick = () => pan(-0.25);
  document.getElementById("on").onclick = () => pan(0.25);
  document.getElementById("all").onclick = () => setView(0, 1);
  slider.addEventListener("input", () => setNow((slider.value / 1000) * end));
  let timer = 0;
  play.onclick = () => {
    if (timer) { clearInterval(timer); timer = 0; play.textContent = "▶"; return; }
    if (now >= end) setNow(0);
    play.textContent = "❚❚";
    timer = setInterval(() => {
      setNow(now + end / 400);
      if (now >= end) { clearInterval(timer); timer = 0; play.textContent = "▶"; }
    }, 40);
  };
  drawView();
})();
