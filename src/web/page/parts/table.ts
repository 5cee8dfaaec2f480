import { html } from 'hono/html';
import type { Html } from '../html.ts';

/** A table whose first column names the row. */
export interface TableContent {
  readonly caption: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly [name: Html, ...cells: Html[]])[];
}

/** Repeats the implicit roles: on a phone the cells of a row are stacked by CSS, and some browsers then drop the roles. */
export function table({ caption, headings, rows }: TableContent): Html {
  return html`<table role="table">
    <caption>
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${headings.map((heading) => html`<th role="columnheader" scope="col">${heading}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        ([name, ...cells]) =>
          html`<tr role="row">
            <th role="rowheader" scope="row">${name}</th>
            ${cells.map((cell) => html`<td role="cell">${cell}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}
