import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { fail, type Handler, type OnBug, refuse } from '../handler.ts';
import { clientOf } from '../limits/client.ts';
import { endOf } from '../limits/connections.ts';
import { createLogins } from './logins.ts';
import type { ClientAuth, Protection, TlsSettings } from '../../domain/protection.ts';
import type { ChangingProtection } from './changing-protection.ts';
import type { RequestTarget } from '../request/target.ts';

interface Begun {
  readonly context: TlsSettings['context'] | undefined;
}

export interface GuardedHandlers {
  /** Parses requests before they are checked. */
  readonly filter: (guard: Handler) => RequestListener;
  /** Answers admitted requests and probes. */
  readonly withLogin: Handler;
  /** Replaces `withLogin` while the protection requires neither TLS nor a login. */
  readonly withoutLogin: Handler;
  readonly onBug: OnBug;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Creates a server that answers only requests that its protection admits. Probes need neither login nor client certificate.
 * Changed users and certificates take effect with the next request or connection. A change of users or of the CA
 * for client certificates ends the open answers.
 */
export function createGuardedServer(
  options: ServerOptions,
  protection: ChangingProtection,
  { filter, withLogin, withoutLogin, onBug }: GuardedHandlers,
): Server | TlsServer {
  const logins = createLogins();
  const answering = new Set<ServerResponse>();
  let current: Protection | undefined = protection.first;
  let context = protection.first.tls?.context;
  /** TLS context with which the handshake of a connection began, by the connection's other end. */
  const contexts = new Map<string, Begun>();

  protection.onChange(() => {
    const next = protection.current();
    if (!isDeepStrictEqual(admission(next), admission(current))) {
      for (const response of answering) response.destroy();
    }
    current = next;
    if (next?.tls !== undefined && !isDeepStrictEqual(next.tls.context, context)) {
      context = next.tls.context;
      if ('setSecureContext' in server) server.setSecureContext(context);
      server.closeIdleConnections();
    }
  });

  /** Notes the context before the handshake begins, because it can change before the handshake ends. */
  function prepare(socket: Socket): void {
    const end = endOf(socket);
    const begun = { context };
    contexts.set(end, begun);
    socket.once('close', () => {
      if (contexts.get(end) === begun) contexts.delete(end);
    });
  }

  async function admit(
    request: IncomingMessage,
    response: ServerResponse,
    target: RequestTarget,
  ): Promise<void> {
    const now = current;
    if (now === undefined) {
      return refuse(response, 500, 'the web configuration is invalid: see the log');
    }
    const then = contexts.get(endOf(request.socket))?.context;
    if (then !== context) response.setHeader('connection', 'close');
    if (!hasCertificate(request.socket, now.tls, then)) {
      return refuse(response, 403, 'a client certificate that this server trusts is required');
    }
    if (now.users.size > 0) {
      const client = clientOf(request.socket.remoteAddress);
      const verdict = await logins.check(request.headers.authorization, now.users, client);
      if (verdict === 'busy') {
        response.setHeader('retry-after', '1');
        return refuse(response, 503, 'too many logins at the same time');
      }
      if (verdict === 'wrong') {
        response.setHeader('www-authenticate', 'Basic realm="evalwatch", charset="UTF-8"');
        return refuse(response, 401, 'a user and a password are required');
      }
      // The protection may have changed during the check.
      if (now !== current) return await admit(request, response, target);
    }
    // The 'close' event of a response that closed before this point will not fire again.
    if (response.destroyed) return undefined;
    answering.add(response);
    response.once('close', () => answering.delete(response));
    // With TLS, a page cannot use its own name for this server: the certificate does not contain it.
    const isOpen = now.users.size === 0 && now.tls === undefined;
    return (isOpen ? withoutLogin : withLogin)(request, response, target);
  }

  const listener = filter((request, response, target) => {
    if (target.route !== 'probe') {
      admit(request, response, target).catch((error: unknown) => fail(response, error, onBug));
      return;
    }
    withLogin(request, response, target);
  });

  const server =
    protection.first.tls === undefined
      ? createServer(options, listener)
      : createTlsServer({ ...options, ...tlsOptions(protection.first.tls) }, listener);
  if (protection.first.tls !== undefined) {
    server.prependListener('connection', prepare);
  }
  return server;
}

/** The part of a protection that decides who is admitted: not the certificate of the server. */
function admission(protection: Protection | undefined): unknown {
  return protection && [protection.users, protection.tls?.clientAuth, protection.tls?.context.ca];
}

function tlsOptions({ context, clientAuth }: TlsSettings) {
  return {
    ...context,
    requestCert: clientAuth !== 'NoClientCert',
    // Admission is decided for each request: probes are admitted, and others get an answer with the reason.
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  };
}

function hasCertificate(
  socket: Socket,
  tls: TlsSettings | undefined,
  then: TlsSettings['context'] | undefined,
): boolean {
  if (tls === undefined || !(socket instanceof TLSSocket)) return true;
  const isGiven = socket.getPeerX509Certificate() !== undefined;
  const isVerified = isGiven && socket.authorized && then?.ca === tls.context.ca;
  const needed: Record<ClientAuth, boolean> = {
    NoClientCert: true,
    VerifyClientCertIfGiven: !isGiven || isVerified,
    RequireAndVerifyClientCert: isVerified,
  };
  return needed[tls.clientAuth];
}
