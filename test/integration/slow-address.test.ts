import { describe, expect, it, vi } from 'vitest';
import { PATIENCE, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { sendJson, startService } from '../support/service.ts';

/** Time that each connection takes. Longer than the 250 ms that Node gives every address of a name but the last. */
const CONNECT_MS = 300;
/** Gives every name two addresses. Only the first one is listened on, and connections take {@link CONNECT_MS}. */
const NETWORK = `
  import dns from 'node:dns';
  dns.lookup = (name, options, callback) => {
    const found = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    process.nextTick(() => options.all ? callback(null, found) : callback(null, '127.0.0.1', 4));
  };
  const { TCP } = process.binding('tcp_wrap');
  const { connect, close } = TCP.prototype;
  const closed = new WeakSet();
  TCP.prototype.connect = function (...args) {
    setTimeout(() => closed.has(this) || connect.apply(this, args), ${CONNECT_MS});
    return 0;
  };
  TCP.prototype.close = function (...args) {
    closed.add(this);
    return close.apply(this, args);
  };`;

describe('a slow network', UNHURRIED, () => {
  it('reaches service and heartbeat under a name with several addresses', async () => {
    await using service = await startService((_, response) => sendJson(response, []));
    await using place = await workspace(service.url.replace('127.0.0.1', 'service.invalid'), {
      service: { allow_http: true, timeout: '1m' },
      heartbeat: { url: `${service.url.replace('127.0.0.1', 'monitor.invalid')}/heartbeat` },
    });
    await using daemon = startDaemon(place, {
      minuteMs: 500,
      env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(NETWORK)}` },
    });
    await daemon.line('project.baseline');
    const paths = () => service.arrivals.map(({ path }) => path);
    await vi.waitFor(() => expect(paths()).toContain('/heartbeat'), PATIENCE);
  });
});
