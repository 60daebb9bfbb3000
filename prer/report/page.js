"use strict";
(() => {
  const root = document.documentElement, all = (query) => [...document.querySelectorAll(query)];
  // The browser may forbid storage, for a local file for instance.
  const kept = (store, key) => { try { return window[store].getItem(key); } catch { return null; } };
  const keep = (store, key, value) => { try { window[store].setItem(key, value); } catch { /* then it is not kept */ } };

  const button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    const chosen = kept("localStorage", "prer-theme"), dark = chosen ? chosen === "dark" : system.matches;
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    keep("localStorage", "prer-theme", root.dataset.theme === "dark" ? "light" : "dark");
    paint();
  });
  system.addEventListener("change", paint);
  paint();

  // Open all sections before printing, since they cannot be opened on paper.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));

  all("select.seed").forEach((select) => {
    const table = document.getElementById(select.dataset.of);
    const seeds = JSON.parse(document.getElementById(`${select.dataset.of}-seeds`).textContent);
    const caption = table.caption.textContent;
    select.hidden = false;
    select.parentElement.nextElementSibling.remove();
    select.addEventListener("change", () => {
      seeds[select.value].forEach((row, i) => row.forEach((cell, j) => {
        const td = table.tBodies[0].rows[i].cells[j + 1];
        td.textContent = cell.shown;
        td.style.setProperty("--v", cell.shade);
        td.dataset.value = cell.value;
      }));
      table.caption.textContent = select.value === "mean" ? caption : caption.replace(/mean of \d+ seeds?/, select.value);
    });
  });

  const table = document.getElementById("runs");
  if (table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
    const value = (row, i) => row.cells[i].dataset.value;
    const numeric = heads.map((_, i) => rows.every((row) => value(row, i) === "" || !Number.isNaN(Number(value(row, i)))));
    const sort = (i) => {
      const down = heads[i].getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      heads.forEach((head, j) => head.setAttribute("aria-sort", j === i ? (down ? "descending" : "ascending") : "none"));
      rows.sort((a, b) => {
        const [x, y] = [value(a, i), value(b, i)];
        if (x === "" || y === "") return (x === "") - (y === ""); // unknown values last
        return sign * (numeric[i] ? x - y : x.localeCompare(y, "en", { numeric: true }));
      });
      body.append(...rows);
    };
    heads.forEach((head, i) => {
      const name = document.createElement("button");
      name.type = "button";
      name.textContent = head.textContent;
      name.addEventListener("click", () => sort(i));
      head.replaceChildren(name);
      head.setAttribute("aria-sort", "none");
    });

    const filter = document.getElementById("filter"), count = document.getElementById("count");
    const show = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row) => {
        const fits = words.every((word) => row.textContent.toLowerCase().includes(word));
        row.hidden = !fits;
        document.querySelector(row.cells[0].firstChild.getAttribute("href")).hidden = !fits;
        shown += fits;
      });
      count.textContent = `${shown} of ${rows.length} runs`;
    };
    filter.addEventListener("input", show);
    show();
  }
  const aim = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", aim);
  aim();

  if (root.dataset.watch) {
    history.scrollRestoration = "manual";
    const before = JSON.parse(kept("sessionStorage", "prer-place") || "null");
    if (before) {
      all("details").forEach((details, i) => { details.open = before.open.includes(i); });
      scrollTo(0, before.y);
    }
    setTimeout(() => {
      const open = all("details").flatMap((details, i) => (details.open ? [i] : []));
      keep("sessionStorage", "prer-place", JSON.stringify({ y: scrollY, open }));
      location.reload();
    }, 1000 * root.dataset.watch);
  }
})();
