"use strict";
(() => {
  const table = document.getElementById("cases"), body = table.tBodies[0];
  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  const rows = [...body.rows];
  const show = () => {
    const words = filter.value.toLowerCase().split(" ").filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${rows.length}`;
  };
  filter.addEventListener("input", show);
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th"), column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const number = head.dataset.kind === "number";
    const text = (row) => row.cells[column].textContent;
    const key = (row) => number ? parseFloat(text(row)) || 0 : text(row);
    const order = (a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
    body.append(...rows.sort((a, b) => down ? order(b, a) : order(a, b)));
  });
  show();
})();
