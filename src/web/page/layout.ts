import { html } from 'hono/html';
import { utcTime, type Html } from './text.ts';

export interface Page {
  /** Plain text for the tab of the browser, the worst first. */
  readonly title: string;
  /** Text that a screen reader announces when it has changed; plain text, without ages. */
  readonly summary: string;
  readonly main: Html;
  /** Whether there is no such page, and this one says so. */
  readonly isUnknown?: boolean;
}

/** What all pages share. */
export interface Frame {
  /** The files that a page loads. */
  readonly assets: { readonly [name in 'style' | 'script' | 'icon']: { readonly path: string } };
  readonly version: string;
  readonly now: number;
  /** Relative path of the overview: `./` or `../`. */
  readonly root: string;
}

export function layout({ title, summary, main }: Page, frame: Frame): Html {
  const { assets, version, now, root } = frame;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="${root}${assets.icon.path}" type="image/svg+xml" />
        <link rel="stylesheet" href="${root}${assets.style.path}" />
        <script type="module" blocking="render" src="${root}${assets.script.path}"></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to content</a>
        <header>
          <p class="product"><a href="${root}">evalwatch</a> <span>${version}</span></p>
          <p class="live" id="live"></p>
        </header>
        <main id="main" tabindex="-1" data-summary="${summary}">
          ${main}
          <p class="quiet as-of">As of ${utcTime(now)}. <a href="">Reload</a></p>
        </main>
        <p class="unseen" id="announcement" role="status"></p>
        <footer>
          <nav aria-label="Other endpoints">
            <ul>
              <li><a href="${root}metrics">Metrics</a></li>
              <li><a href="${root}api/v1/projects">Projects as JSON</a></li>
              <li><a href="${root}api/v1/experiments">Experiments</a></li>
              <li><a href="${root}api/v1/prompts">Prompts</a></li>
              <li><a href="${root}api/v1/transitions">Transitions</a></li>
              <li><a href="${root}api/v1/failures">Failures</a></li>
              <li><a href="${root}-/healthy">Health</a></li>
              <li><a href="${root}-/ready">Readiness</a></li>
            </ul>
          </nav>
        </footer>
      </body>
    </html>`;
}

/** A list of names and values, without those that are undefined. */
export function facts(
  className: string,
  pairs: readonly (readonly [name: string, value: Html | string | undefined])[],
): Html {
  return html`<dl class="${className}">
    ${pairs.map(
      ([name, value]) =>
        value !== undefined &&
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;
}

/** Part of a page with a heading, which a link can name. */
export function section(id: string, heading: string, content: Html): Html {
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">${heading}</h2>
    ${content}
  </section>`;
}
