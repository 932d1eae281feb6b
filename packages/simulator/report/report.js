// Adds to a report what paper cannot do: switching policies off and on, and reading values off the charts. Nothing is loaded.
const SVG = 'http://www.w3.org/2000/svg';
const off = new Set();

for (const box of document.querySelectorAll('[data-policy]')) {
  box.addEventListener('change', () => {
    const style = box.dataset.policy;
    if (box.checked) off.delete(style);
    else off.add(style);
    for (const group of document.querySelectorAll(`.chart .p${style}, tr.p${style}`)) {
      group.classList.toggle('off', !box.checked);
    }
  });
}

for (const svg of document.querySelectorAll('svg[data-chart]')) {
  const { seconds, left, right, width, lines } = JSON.parse(svg.dataset.chart);
  const reader = svg.querySelector('.reader');
  const rule = reader.querySelector('line');
  const readout = svg.parentElement.querySelector('.readout');
  const points = lines[0]?.at.length ?? 0;
  let index = -1;

  const read = (next) => {
    index = Math.max(0, Math.min(points - 1, next));
    const share = (index + 0.5) / points;
    const x = left + share * (width - left - right);
    rule.setAttribute('x1', x);
    rule.setAttribute('x2', x);
    for (const dot of reader.querySelectorAll('circle')) dot.remove();
    readout.replaceChildren(`${Math.round(share * seconds)} s`);
    for (const { name, style, says, at } of lines) {
      if (off.has(String(style))) continue;
      const value = document.createElement('span');
      value.className = `p p${style}`;
      value.append(' · ', name, ' ');
      value.append(Object.assign(document.createElement('b'), { textContent: says[index] }));
      readout.append(value);
      if (at[index] === null) continue;
      const dot = document.createElementNS(SVG, 'circle');
      dot.setAttribute('cx', x);
      dot.setAttribute('cy', at[index]);
      dot.setAttribute('r', '3.5');
      dot.setAttribute('class', `p p${style}`);
      reader.append(dot);
    }
    reader.removeAttribute('hidden');
  };
  const hide = () => {
    reader.setAttribute('hidden', '');
    readout.replaceChildren();
    index = -1;
  };

  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    read(Math.floor(((at - left) / (width - left - right)) * points));
  });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', (event) => {
    const step = event.shiftKey ? 10 : 1;
    if (event.key === 'ArrowRight') read(index + step);
    else if (event.key === 'ArrowLeft') read(index < 0 ? points - 1 : index - step);
    else if (event.key === 'Home') read(0);
    else if (event.key === 'End') read(points - 1);
    else return;
    event.preventDefault();
  });
}

addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('main details:has(.charts)')) details.open = true;
});
