"""The script that a user of Python would write: requests, sqlite3, prometheus_client.

Run as `python3 python_peer.py TASK`; prints the same JSON as measured-process.ts does.
"""

import json
import os
import sqlite3
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from prometheus_client import CollectorRegistry, Counter, Gauge

STATUSES = ("PENDING", "RUNNING", "COMPLETED", "FAILED")


class Monitor:
    def __init__(self, task, directory):
        self.base_url = task["baseUrl"]
        self.projects = task["projects"]
        self.session = requests.Session()
        self.session.headers["X-API-Key"] = task["apiKey"]
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=task["concurrency"])
        self.session.mount("http://", adapter)
        self.pool = ThreadPoolExecutor(task["concurrency"])
        self.db = sqlite3.connect(os.path.join(directory, "peer.db"))
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute(
            "CREATE TABLE prompt (project TEXT, id TEXT, name TEXT, status TEXT, changed_at REAL,"
            " PRIMARY KEY (project, id))"
        )
        registry = CollectorRegistry()
        self.prompts = Gauge("prompts", "Prompts by status", ["project", "status"], registry=registry)
        self.changes = Counter("changes", "Changed prompts", ["project"], registry=registry)

    def fetch(self, project):
        response = self.session.get(f"{self.base_url}/v2/projects/{project}/prompts/", timeout=300)
        response.raise_for_status()
        return project, response.json()

    def store(self, project, items):
        before = self.db.total_changes
        now = time.time()
        with self.db:
            self.db.executemany(
                "INSERT INTO prompt VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (project, id) DO UPDATE SET status = excluded.status,"
                " changed_at = excluded.changed_at WHERE status <> excluded.status",
                ((project, item["id"], item["name"], item["status"], now) for item in items),
            )
        self.changes.labels(project).inc(self.db.total_changes - before)
        counts = dict.fromkeys(STATUSES, 0)
        for item in items:
            counts[item["status"]] += 1
        for status, count in counts.items():
            self.prompts.labels(project, status).set(count)

    def poll(self):
        prompts = 0
        for project, items in self.pool.map(self.fetch, self.projects):
            prompts += len(items)
            self.store(project, items)
        return prompts

    def close(self):
        self.pool.shutdown()
        self.session.close()
        self.db.close()


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def main():
    task = json.loads(sys.argv[1])
    cpu = wall = 0.0
    monitor = None
    prompts = None
    rounds = task["warmUp"] + task["polls"]
    for index in range(rounds):
        if monitor is None or task["fresh"]:
            if monitor is not None:
                monitor.close()
            monitor = Monitor(task, tempfile.mkdtemp(dir=task["directory"]) if task["fresh"] else task["directory"])
        if index == task["warmUp"]:
            with open("/proc/self/clear_refs", "w") as clear_refs:
                clear_refs.write("5")
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        prompts = monitor.poll()
        if index >= task["warmUp"]:
            cpu += time.process_time() - cpu_before
            wall += time.perf_counter() - wall_before
    monitor.close()
    per_poll = 1000 / task["polls"]
    figures = {"cpuMs": cpu * per_poll, "wallMs": wall * per_poll, "peakBytes": peak_bytes()}
    print(json.dumps({"figures": figures, "prompts": prompts}))


main()
