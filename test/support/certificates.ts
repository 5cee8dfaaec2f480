import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate and its key, as files and as text. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Creates a certificate for 127.0.0.1 in a directory, issued by `authority` or else self-signed. Overwrites an earlier
 * certificate of this name. A self-signed one may issue others, as one that `isAuthority`.
 */
export function makeCertificate(
  directory: string,
  name: string,
  authority?: Certificate,
  { isAuthority = authority === undefined } = {},
): Certificate {
  const certFile = join(directory, `${name}.crt`);
  const keyFile = join(directory, `${name}.key`);
  const issuer =
    authority === undefined ? [] : ['-CA', authority.certFile, '-CAkey', authority.keyFile];
  const constraints = isAuthority ? ['-addext', 'basicConstraints=critical,CA:TRUE'] : [];
  const making = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', [...making, ...files, ...subject, ...issuer, ...constraints], {
    stdio: 'ignore',
  });
  return { certFile, keyFile, cert: read(certFile), key: read(keyFile) };
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
