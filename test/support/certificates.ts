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
 * Makes a certificate in a directory: of an authority, if there is one, otherwise its own. A server's is for 127.0.0.1.
 * What was made under this name before is overwritten.
 */
export function makeCertificate(
  directory: string,
  name: string,
  authority?: Certificate,
): Certificate {
  const certFile = join(directory, `${name}.crt`);
  const keyFile = join(directory, `${name}.key`);
  const issuer =
    authority === undefined
      ? ['-addext', 'basicConstraints=critical,CA:TRUE']
      : ['-CA', authority.certFile, '-CAkey', authority.keyFile];
  const making = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', [...making, ...files, ...subject, ...issuer], { stdio: 'ignore' });
  return { certFile, keyFile, cert: read(certFile), key: read(keyFile) };
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
