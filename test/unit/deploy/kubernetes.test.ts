import { execFile } from 'node:child_process';
import { cp, glob, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import type { Config } from '../../../src/config/config.ts';
import { debianTool, IN_CI } from '../../support/debian-tool.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { CONFIG, image, loadInImage, readText } from './repository.ts';

// Tests what `kubectl apply -k` sends, rendered by kubectl.

const run = promisify(execFile);
const kubectl = debianTool('kubernetes-client', 'kubectl') ?? '';
if (kubectl === '') console.warn('no kubectl here: the kustomizations were not rendered');
/** Whether kubectl has kustomize 2.0.3, which lacks newer fields. That of Debian 12 has it. */
const isOldKubectl = kubectl !== '' && (await minorVersion()) < 21;

const NAME = 'evalwatch';
const LABELS = { 'app.kubernetes.io/name': NAME };

type Overlay = Awaited<ReturnType<typeof render>>;
let daemon: Overlay;
let workers: Overlay;
let operator: Overlay;

// In CI the tests fail where kubectl is missing, instead of being skipped.
describe.runIf(kubectl !== '' || IN_CI)('for Kubernetes', () => {
  beforeAll(async () => {
    daemon = await render('kubernetes/overlays/daemon');
    workers = await render('kubernetes/overlays/workers');
    operator = await render('kubernetes/overlays/prometheus-operator');
  });

  describe('every overlay', () => {
    it('has the expected objects, with the names of earlier versions', () => {
      const both = ['ConfigMap', 'Deployment', 'NetworkPolicy', 'Service'];
      const named = (kinds: readonly string[]) => kinds.map((kind) => `${kind} ${NAME}`);
      expect(daemon.names).toEqual(named([...both, 'PersistentVolumeClaim']).toSorted());
      expect(workers.names).toEqual(
        [...named([...both, 'PodDisruptionBudget']), 'NetworkPolicy evalwatch-postgres'].toSorted(),
      );
      expect(operator.names).toEqual([
        'ConfigMap evalwatch-dashboard',
        `PrometheusRule ${NAME}`,
        `ServiceMonitor ${NAME}`,
      ]);
    });

    it('sets no namespace, and labels every object', () => {
      for (const { metadata } of [daemon, workers, operator].flatMap((each) => each.manifests)) {
        expect(metadata.namespace).toBeUndefined();
        expect(metadata.labels).toMatchObject(LABELS);
      }
    });
  });

  const POD = 'spec.template.spec';
  const CONTAINER = `${POD}.containers[0]`;
  const some = (fields: object): unknown => expect.objectContaining(fields);
  const probe = (path: string) => some({ httpGet: { path, port: 'http' } });
  const expected: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    Deployment: {
      // A selector cannot change.
      'spec.selector': { matchLabels: LABELS },
      'spec.template.metadata.labels': LABELS,
      'spec.template.metadata.annotations': {
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': String(image.port),
        'prometheus.io/path': '/metrics',
      },
      [`${POD}.automountServiceAccountToken`]: false,
      [`${POD}.enableServiceLinks`]: false,
      [`${POD}.terminationGracePeriodSeconds`]: 30,
      [`${POD}.securityContext`]: some({
        runAsNonRoot: true,
        runAsUser: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      }),
      [`${CONTAINER}.image`]: image.name,
      // A changed ConfigMap is applied without a restart.
      [`${CONTAINER}.args`]: ['run', '--watch-config'],
      [`${CONTAINER}.env`]: [some({ name: 'NODE_OPTIONS' })],
      [`${CONTAINER}.ports`]: [{ name: 'http', containerPort: image.port }],
      [`${CONTAINER}.startupProbe`]: probe('/-/healthy'),
      [`${CONTAINER}.livenessProbe`]: probe('/-/healthy'),
      [`${CONTAINER}.readinessProbe`]: probe('/-/ready'),
      [`${CONTAINER}.securityContext`]: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      [`${CONTAINER}.resources`]: some({
        requests: some({ cpu: expect.any(String), memory: expect.any(String) }),
        limits: some({ memory: expect.any(String) }),
      }),
    },
    Service: {
      'spec.selector': LABELS,
      'spec.ports': [{ name: 'http', port: image.port, targetPort: 'http' }],
    },
    NetworkPolicy: {
      'spec.podSelector': { matchLabels: LABELS },
      'spec.policyTypes': ['Ingress', 'Egress'],
      'spec.ingress': [some({ ports: [some({ port: 'http' })] })],
      'spec.egress': [
        some({ ports: [some({ port: 53 }), some({ port: 53 })] }),
        some({ ports: [some({ port: 443 })] }),
      ],
    },
  };

  describe.each([
    ['daemon', () => daemon],
    ['workers', () => workers],
  ])('the overlay %s', (name, overlay) => {
    it.each(Object.entries(expected))('has a %s as it must be', (kind, fields) => {
      for (const [path, value] of Object.entries(fields)) {
        expect(overlay().get(kind)).toHaveProperty(path, value);
      }
    });

    it('mounts every volume, and refers only to existing objects', () => {
      const { pod, get } = overlay();
      expect(
        pod()
          .containers[0].volumeMounts.map((mount) => mount.name)
          .toSorted(),
      ).toEqual(
        pod()
          .volumes.map((volume) => volume.name)
          .toSorted(),
      );
      for (const { configMap, persistentVolumeClaim } of pod().volumes) {
        if (configMap) get('ConfigMap', configMap.name);
        if (persistentVolumeClaim) get('PersistentVolumeClaim', persistentVolumeClaim.claimName);
      }
    });

    it('mounts a valid configuration where the image reads it, with the Secret that its comments create', async () => {
      const { mountOf, pod } = overlay();
      expect(join(mountOf('configMap'), 'evalwatch.yaml')).toBe(image.env['EVALWATCH_CONFIG']);
      const config = await configOf(overlay());
      const text = readText(`config/kubernetes/overlays/${name}/kustomization.yaml`);
      const [, secretName] = /kubectl create secret generic (\S+)/.exec(text) ?? [];
      const created = [...text.matchAll(/--from-file=secrets\/(\S+)/g)].map(([, key = '']) =>
        join(mountOf('secret'), key),
      );
      const [secret] = pod().volumes.flatMap((each) => each.secret ?? []);
      expect(secret).toEqual({ secretName, defaultMode: 0o440 });
      const url = 'postgresUrl' in config.store ? [config.store.postgresUrl] : [];
      expect([...config.projects.map((project) => project.key), ...url]).toEqual(
        created.map((file) => ({ file })),
      );
    });
  });

  it('one daemon never runs twice, and has its volume at the store path of the image', () => {
    expect(daemon.get('Deployment').spec).toMatchObject({
      replicas: 1,
      strategy: { type: 'Recreate' },
    });
    expect(daemon.mountOf('persistentVolumeClaim')).toBe(
      dirname(image.env['EVALWATCH_STORE_PATH'] ?? ''),
    );
  });

  it('several workers use PostgreSQL, and otherwise equal the single daemon', async () => {
    expect((await configOf(workers)).store).toHaveProperty('postgresUrl');
    expect(workers.get('Service')).toEqual(daemon.get('Service'));
    expect(workers.get('NetworkPolicy')).toEqual(daemon.get('NetworkPolicy'));
    expect(common(workers.pod())).toEqual(common(daemon.pod()));
  });

  it('the Prometheus Operator selects the Service, names the job evalwatch and keeps the labels of the metrics', () => {
    const { spec } = operator.get('ServiceMonitor');
    expect(spec).toMatchObject({
      selector: { matchLabels: LABELS },
      jobLabel: 'app.kubernetes.io/name',
      // The name of the port of the Service.
      endpoints: [{ port: 'http', honorLabels: true }],
    });
    const { metadata } = daemon.get('Service');
    expect(metadata.labels).toMatchObject(spec.selector.matchLabels);
  });

  it('the dashboard is the shipped one, with the label for Grafana sidecars, below 200 kB', () => {
    const { data, metadata } = operator.get('ConfigMap', 'evalwatch-dashboard');
    expect(metadata.labels['grafana_dashboard']).toBe('1');
    const shipped = readText('config/grafana/dashboards/evalwatch.json');
    expect(data).toEqual({ 'evalwatch.json': shipped });
    // kubectl keeps what it applied in an annotation of at most 256 KiB.
    expect(shipped.length).toBeLessThan(200_000);
  });

  it('the example in docs/operations.md changes image, namespace, labels and configuration', async () => {
    const [, text = ''] =
      /```yaml\n# kustomization\.yaml[^\n]*\n(.*?)```/s.exec(readText('docs/operations.md')) ?? [];
    const mine = await render('kubernetes', {
      'kustomization.yaml': text.replaceAll(/\S*(overlays\/[\w-]+)\S*/g, '$1'),
      'evalwatch.yaml': 'mine: true\n',
    });
    expect(mine.names).toEqual([...daemon.names, ...operator.names].toSorted());
    const registry = `registry.example.com/${image.name}`;
    expect(mine.get('Deployment')).toHaveProperty(`${CONTAINER}.image`, registry);
    expect(mine.get('ConfigMap').data).toEqual({ 'evalwatch.yaml': 'mine: true\n' });
    for (const { metadata } of mine.manifests) expect(metadata.namespace).toBe('evaluations');
    const { metadata } = mine.get('ServiceMonitor');
    expect(metadata.labels['release']).toBe(isOldKubectl ? undefined : 'kube-prometheus-stack');
    expect(mine.get('Deployment')).toHaveProperty('spec.selector', { matchLabels: LABELS });
  });

  it('the pod in docs/operations.md that restores a backup has the volume of the daemon, at its place', () => {
    const [, text = ''] =
      /<<'END'\n( +apiVersion: v1\n +kind: Pod\n.*?)\n +END\n/s.exec(
        readText('docs/operations.md'),
      ) ?? [];
    const { spec: pod } = parse(text) as { spec: Pod };
    const { spec } = daemon.get('Deployment').spec.template;
    expect(spec.volumes).toEqual(expect.arrayContaining([...pod.volumes]));
    expect(spec.containers[0].volumeMounts).toEqual(
      expect.arrayContaining([...pod.containers[0].volumeMounts]),
    );
    expect(pod.containers[0]).toHaveProperty('args.4', image.env['EVALWATCH_STORE_PATH']);
  });
});

/** The fields of any manifest that the tests read. */
interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly spec: Pod };
  };
}

interface Pod {
  readonly containers: readonly [
    { readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[] },
  ];
  readonly volumes: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly secret?: object;
    readonly persistentVolumeClaim?: { readonly claimName: string };
  }[];
  readonly topologySpreadConstraints?: readonly object[];
}

/**
 * Renders a kustomization as `kubectl apply -k` does, and fails if kubectl warns.
 * @param directory below config/
 * @param further files to add to it, by name
 */
async function render(directory: string, further: Readonly<Record<string, string>> = {}) {
  await using copy = await temporaryDirectory();
  for (const part of ['kubernetes', 'grafana']) {
    await cp(join(CONFIG, part), join(copy.path, 'config', part), { recursive: true });
  }
  const place = join(copy.path, 'config', directory);
  for (const [name, text] of Object.entries(further)) await writeFile(join(place, name), text);
  if (isOldKubectl) await translate(copy.path);
  const options = { maxBuffer: 16 * 1024 * 1024 };
  const { stdout, stderr } = await run(kubectl, ['kustomize', place], options);
  if (stderr !== '') throw new Error(stderr);
  const manifests = parseAllDocuments(stdout).map((each) => each.toJS() as Manifest);
  const get = (kind: string, name = NAME): Manifest => {
    const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found;
  };
  const pod = () => get('Deployment').spec.template.spec;
  return {
    manifests,
    /** Kind and name of each object, sorted. */
    names: manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted(),
    get,
    pod,
    /** Returns the mount path of the volume with this field. */
    mountOf: (field: string): string => {
      const volume = pod().volumes.find((each) => field in each);
      const [{ volumeMounts }] = pod().containers;
      const mount = volumeMounts.find(({ name }) => name === volume?.name);
      if (mount === undefined) throw new Error(`no ${field} is mounted`);
      return mount.mountPath;
    },
  };
}

async function minorVersion(): Promise<number> {
  const { stdout } = await run(kubectl, ['version', '--client', '-o', 'json']);
  const { clientVersion } = JSON.parse(stdout) as { readonly clientVersion: { minor: string } };
  return Number.parseInt(clientVersion.minor, 10);
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly patches?: readonly { readonly path: string }[];
  readonly labels?: unknown;
}

/** Rewrites the kustomizations with the field names of kustomize 2.0.3, which has no `labels`. */
async function translate(root: string): Promise<void> {
  for await (const file of glob('**/kustomization.yaml', { cwd: root })) {
    const path = join(root, file);
    const text = await readFile(path, 'utf8');
    const { resources = [], patches, labels: _, ...others } = parse(text) as Kustomization;
    const directories: string[] = [];
    for (const name of resources) {
      if ((await stat(join(dirname(path), name))).isDirectory()) directories.push(name);
    }
    const old = {
      ...others,
      bases: directories,
      resources: resources.filter((name) => !directories.includes(name)),
      ...(patches && { patchesStrategicMerge: patches.map(({ path: patch }) => patch) }),
    };
    await writeFile(path, stringify(old));
  }
}

/** Loads the configuration of an overlay as the daemon does. */
async function configOf(overlay: Overlay): Promise<Config> {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'evalwatch.yaml');
  await writeFile(file, overlay.get('ConfigMap').data['evalwatch.yaml'] ?? '');
  return await loadInImage(file);
}

/** Returns the parts of a pod that do not depend on its store. */
function common(pod: Pod): object {
  const { topologySpreadConstraints: _, containers, volumes, ...others } = pod;
  const [{ volumeMounts, ...container }] = containers;
  const isKept = (each: { readonly name: string }) => !['data', 'tmp'].includes(each.name);
  return {
    ...others,
    container,
    mounts: volumeMounts.filter(isKept),
    volumes: volumes.filter(isKept),
  };
}
