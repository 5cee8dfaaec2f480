import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { vi } from 'vitest';
import { PATIENCE } from './server.ts';

/** An alert of a notification that reached the webhook. */
interface Page {
  /** Time of arrival, monotonic ms. */
  readonly at: number;
  /** Name in Alertmanager's configuration, such as critical or search-chat. */
  readonly receiver: string;
  readonly status: 'firing' | 'resolved';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The fields used of what Alertmanager posts. */
interface Notification {
  readonly receiver: string;
  readonly alerts: readonly Omit<Page, 'at' | 'receiver'>[];
}

/** Server for Alertmanager's webhooks; `await using` closes it. */
export interface Webhook extends AsyncDisposable {
  readonly url: string;
  readonly pages: readonly Page[];
  /** Waits for a page, of this project if one is given, that arrived later than `after`. */
  page(
    status: Page['status'],
    alertname: string,
    options?: { readonly project?: string; readonly after?: number },
  ): Promise<Page>;
}

export async function startWebhook(): Promise<Webhook> {
  const pages: Page[] = [];
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now();
    const { receiver, alerts } = (await json(request)) as Notification;
    pages.push(...alerts.map((alert) => ({ ...alert, at, receiver })));
    response.end();
  }
  const server = createServer((request, response) => void receive(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages,
    page: (status, alertname, { project, after = 0 } = {}) =>
      vi.waitFor(() => {
        const found = pages.find(
          ({ at, status: seen, labels }) =>
            at > after &&
            seen === status &&
            labels['alertname'] === alertname &&
            (project === undefined || labels['project'] === project),
        );
        if (found !== undefined) return found;
        throw new Error(`no ${alertname} ${status}; the pages were ${JSON.stringify(pages)}`);
      }, PATIENCE),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
