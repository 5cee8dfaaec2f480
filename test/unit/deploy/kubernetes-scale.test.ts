import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../support/temporary.ts';
import { loadInImage, readManifests, readText, type Manifest } from './repository.ts';

const FILE = 'kubernetes/evalwatch-scale.yaml';

interface Deployment extends Manifest {
  readonly spec: {
    readonly replicas: number;
    readonly strategy: object;
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly metadata: object; readonly spec: Pod };
  };
}

interface Pod {
  readonly topologySpreadConstraints?: readonly object[];
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [{ readonly volumeMounts: readonly Named[] }];
  readonly volumes: readonly Named[];
}

interface Named {
  readonly name: string;
  readonly mountPath?: string;
}

const alone = byKind('kubernetes/evalwatch.yaml');
const scale = byKind(FILE);
const deployment = scale['Deployment'] as Deployment;
const { template } = deployment.spec;

function byKind(file: string): Readonly<Record<string, Manifest>> {
  return Object.fromEntries(readManifests(file).map((manifest) => [manifest.kind, manifest]));
}

/** The parts of a pod that do not depend on its store. */
function common(all: Pod): object {
  const {
    topologySpreadConstraints: _,
    terminationGracePeriodSeconds: __,
    containers,
    volumes,
    ...pod
  } = all;
  const [{ volumeMounts, ...container }] = containers;
  const kept = ({ name }: Named) => !['data', 'tmp', 'api-key', 'secrets'].includes(name);
  return {
    ...pod,
    container,
    mounts: volumeMounts.filter(kept),
    volumes: volumes.filter(kept),
  };
}

describe('several workers in Kubernetes', () => {
  it('are what one daemon is, but for its volume and for what keeps some of them running', () => {
    const { PersistentVolumeClaim: _, ...same } = alone;
    expect(new Set(Object.keys(scale))).toEqual(
      new Set([...Object.keys(same), 'PodDisruptionBudget']),
    );
    expect(scale['Service']).toEqual(alone['Service']);
    for (const { metadata } of Object.values(scale)) {
      expect(metadata).toEqual(alone['Service']?.metadata);
    }
  });

  it('are pods as that one is: rights, probes, limits, image', () => {
    const { template: one } = (alone['Deployment'] as Deployment).spec;
    expect(template.metadata).toEqual(one.metadata);
    expect(common(template.spec)).toEqual(common(one.spec));
  });

  it('have 30 s to stop, as a database that does not answer takes them up to 15 s', () => {
    expect(template.spec.terminationGracePeriodSeconds).toBe(30);
  });

  it('are three, replaced one by one, on machines and in zones of their own, never two away at once', () => {
    const { replicas, strategy, selector } = deployment.spec;
    expect({ replicas, strategy }).toEqual({
      replicas: 3,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } },
    });
    expect(template.spec.topologySpreadConstraints).toEqual(
      ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: selector,
      })),
    );
    expect(scale['PodDisruptionBudget']).toMatchObject({
      apiVersion: 'policy/v1',
      spec: { maxUnavailable: 1, selector },
    });
  });

  it('may ask the database, too', () => {
    const { egress, ...policy } = (scale['NetworkPolicy'] as Policy).spec;
    const { egress: before, ...samePolicy } = (alone['NetworkPolicy'] as Policy).spec;
    expect(policy).toEqual(samePolicy);
    expect(egress).toEqual([...before, { ports: [{ port: 5432, protocol: 'TCP' }] }]);
  });

  it('have a configuration that the daemon takes, and the secrets that it names', async () => {
    await using directory = await temporaryDirectory();
    const file = join(directory.path, 'evalwatch.yaml');
    const { data } = scale['ConfigMap'] as Manifest & { data: Record<string, string> };
    await writeFile(file, data['evalwatch.yaml'] ?? '');
    const config = await loadInImage(file);
    const [, secret, key, url] =
      /create secret generic (\S+) --from-file=(\S+) --from-file=(\S+)/.exec(
        readText(`config/${FILE}`),
      ) ?? [];
    const volume = template.spec.volumes.find(({ name }) => name === 'secrets');
    expect(volume).toMatchObject({ secret: { secretName: secret, defaultMode: 0o440 } });
    const [{ volumeMounts }] = template.spec.containers;
    const place = volumeMounts.find(({ name }) => name === 'secrets')?.mountPath ?? '';
    expect(config.projects.map((project) => project.key)).toEqual([
      { file: join(place, key ?? '') },
    ]);
    expect(config.store).toMatchObject({ postgresUrl: { file: join(place, url ?? '') } });
    expect(new Set(volumeMounts.map(({ name }) => name))).toEqual(
      new Set(template.spec.volumes.map(({ name }) => name)),
    );
  });
});

interface Policy extends Manifest {
  readonly spec: { readonly egress: readonly object[] };
}
