/** The service in a process of its own: told its workload in the arguments, it says its address and serves for as long as its stdin is open. */
import { startBenchService } from './service.ts';
import type { Workload } from './workload.ts';

// Whoever started it has ended.
process.stdin.resume().on('end', () => process.exit());
const workload = JSON.parse(process.argv[2] ?? '') as Workload;
const service = await startBenchService(workload);
console.log(service.urlOf(''));
