/** One line of a panel: cost by size. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
}

const WIDTH = 270;
const HEIGHT = 250;
const LEFT = 52;
const TOP = 64;
const GAP = 54;
const BOTTOM = 44;

/** Colours in the light and dark theme, and dashes; floors are grey. */
const STYLES: Readonly<Record<string, readonly [light: string, dark: string, dashes: string]>> = {
  evalwatch: ['#1d4ed8', '#7aa2ff', 'none'],
  node: ['#b45309', '#f0a04b', 'none'],
  python: ['#15803d', '#5fcf80', 'none'],
  download: ['#6b7280', '#9ca3af', '1 4'],
  sha256: ['#6b7280', '#9ca3af', '5 3'],
  parse: ['#6b7280', '#9ca3af', '9 3'],
  insert: ['#6b7280', '#9ca3af', '9 3 2 3'],
};

/** Draws panels side by side on the same logarithmic scales, as SVG that follows the reader's light or dark theme. */
export function plot(panels: readonly Panel[], xLabel: string, yLabel: string): string {
  const points = panels.flatMap(({ lines }) => lines.flatMap((line) => line.points));
  const x = logScale(points.map(([value]) => value));
  const y = logScale(points.map(([, value]) => value));
  const names = Object.keys(STYLES).filter((name) =>
    panels.some(({ lines }) => lines.some((line) => line.name === name)),
  );
  const width = LEFT + panels.length * (WIDTH + GAP) - GAP / 2;
  const height = TOP + HEIGHT + BOTTOM;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${yLabel} by ${xLabel}">`,
    `<style>${styleSheet(names)}</style>`,
    ...names.map((name, index) => legend(name, LEFT + index * 100)),
    ...panels.map((panel, index) => {
      const left = LEFT + index * (WIDTH + GAP);
      return `<g transform="translate(${left} ${TOP})">${drawPanel(panel, x, y, xLabel)}</g>`;
    }),
    `<text transform="translate(12 ${TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">${yLabel}</text>`,
    '</svg>\n',
  ].join('\n');
}

interface Scale {
  /** Position from 0 to 1. */
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

/** Returns a scale over whole powers of ten. */
function logScale(values: readonly number[]): Scale {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return {
    at: (value) => (Math.log10(value) - low) / (high - low),
    ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
  };
}

function drawPanel({ title, lines }: Panel, x: Scale, y: Scale, xLabel: string): string {
  const toX = (value: number) => (x.at(value) * WIDTH).toFixed(1);
  const toY = (value: number) => ((1 - y.at(value)) * HEIGHT).toFixed(1);
  return [
    `<text y="-10" class="title">${title}</text>`,
    ...y.ticks.map(
      (tick) =>
        `<path class="grid" d="M0 ${toY(tick)}H${WIDTH}"/><text x="-6" y="${toY(tick)}" dy="4" text-anchor="end">${label(tick)}</text>`,
    ),
    ...x.ticks.map(
      (tick) =>
        `<path class="grid" d="M${toX(tick)} 0V${HEIGHT}"/><text x="${toX(tick)}" y="${HEIGHT + 16}" text-anchor="middle">${label(tick)}</text>`,
    ),
    `<text x="${WIDTH / 2}" y="${HEIGHT + 34}" text-anchor="middle">${xLabel}</text>`,
    ...lines.map(({ name, points }) => {
      const path = points.map(([px, py]) => `${toX(px)} ${toY(py)}`).join('L');
      const dots = points.map(([px, py]) => `<circle cx="${toX(px)}" cy="${toY(py)}" r="2.5"/>`);
      return `<g class="line ${name}"><path d="M${path}"/>${dots.join('')}</g>`;
    }),
  ].join('\n');
}

/** Returns a text such as 10K. */
function label(tick: number): string {
  return tick.toLocaleString('en', { notation: 'compact' });
}

function legend(name: string, left: number): string {
  return `<g transform="translate(${left} 18)"><g class="line ${name}"><path d="M0 0H24"/></g><text x="30" dy="4">${name}</text></g>`;
}

function styleSheet(names: readonly string[]): string {
  const colours = (theme: 0 | 1) =>
    names.map((name) => `.${name}{color:${STYLES[name]?.[theme]}}`).join('');
  const dashes = names.map((name) => `.${name} path{stroke-dasharray:${STYLES[name]?.[2]}}`);
  return [
    'text{font:12px system-ui,sans-serif;fill:#374151}.title{font-weight:600}',
    '.grid{stroke:#e5e7eb;fill:none}.line path{stroke:currentColor;fill:none;stroke-width:1.5}',
    '.line circle{fill:currentColor}.evalwatch path{stroke-width:3}',
    ...dashes,
    colours(0),
    `@media (prefers-color-scheme:dark){text{fill:#d1d5db}.grid{stroke:#374151}${colours(1)}}`,
  ].join('');
}
