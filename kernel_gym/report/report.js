// What a reader of many tasks needs: sections that are filled in when they are opened, a filter
// and an order. Without this script the page shows everything, and asks for nothing else.
(() => {
  const unfold = (section) => {
    const folded = section.querySelector(":scope > noscript");
    if (!folded) return;
    const whole = document.createElement("div");
    whole.innerHTML = folded.textContent;
    folded.replaceWith(...whole.childNodes);
  };
  document.addEventListener("toggle", (event) => {
    if (event.target.open) unfold(event.target);
  }, true);

  const show = () => {
    const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!section || section.tagName !== "DETAILS") return;
    section.hidden = false;
    unfold(section);
    section.open = true;
    section.scrollIntoView();
  };
  addEventListener("hashchange", show);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    const target = link && (link.getAttribute("href") || link.getAttribute("xlink:href"));
    if (target && target === location.hash) setTimeout(show);
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details.task").forEach(unfold));

  const table = document.querySelector("table.tasks");
  const controls = document.querySelector(".controls");
  if (!table || !controls) return show();
  const body = table.tBodies[0], rows = [...body.rows];
  const section = (row) => document.getElementById(row.dataset.task);
  const words = controls.querySelector("input"), state = controls.querySelector("select");
  const count = controls.querySelector("output");

  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const fits = wanted.every((word) => row.dataset.words.includes(word))
        && (!state.value || row.dataset.state.split(" ").includes(state.value));
      row.hidden = !fits;
      if (section(row)) section(row).hidden = !fits;
      left += fits;
    }
    count.textContent = `${left} of ${rows.length}`;
  };
  words.addEventListener("input", filter);
  state.addEventListener("change", filter);

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value || -1);
  };
  const sort = (header) => {
    const column = header.cellIndex, rising = header.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (rising ? 1 : -1);
    rows.sort((a, b) => order(value(a, column), value(b, column)));
    body.append(...rows);
    const sections = rows.map(section).filter(Boolean);
    if (sections.length) sections[0].parentElement.append(...sections);
  };
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
  }
  controls.hidden = false;
  filter();
  show();
})();
