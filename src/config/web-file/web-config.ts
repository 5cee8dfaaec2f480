import type { CLIENT_AUTH_TYPES } from './web-schema.ts';

/** What the web configuration file asks for (docs/web-configuration.md), valid. */
export interface WebConfig {
  /** The file itself and all that it names, absolute. */
  readonly files: readonly string[];
  /** Undefined: plain HTTP. */
  readonly tls: WebTls | undefined;
  /** A bcrypt hash, `$2b$`, by user; empty: nobody has to log in. */
  readonly users: ReadonlyMap<string, string>;
  /** To set on every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface WebTls {
  /** What Node's `tls.createSecureContext` takes: certificates and keys themselves, names as OpenSSL has them. */
  readonly context: {
    readonly cert: string;
    readonly key: string;
    readonly ca: string | undefined;
    readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
    readonly maxVersion: 'TLSv1.2' | 'TLSv1.3';
    readonly honorCipherOrder: boolean;
    readonly ciphers?: string;
    readonly ecdhCurve?: string;
  };
  readonly clientAuth: (typeof CLIENT_AUTH_TYPES)[number];
}
