import { SOURCE } from '../../row.ts';
import { connectHeldServer } from './held-server.ts';
import { createModelServer } from '../model/server.ts';
import type { StatementServer } from './statement-server.ts';
import { connectRealServer } from './real-server.ts';

/**
 * Opens the server of three workers: the model, or a real server with the model beside it. Sources with a planted mistake
 * get a real server without the model, which may have no functions for their statements.
 * @param database `model`, or the URL of a new database
 * @param fault called with each difference between model and server
 */
export async function openServer(
  source: string,
  database: string,
  fault: (text: string) => void,
): Promise<StatementServer> {
  if (database === 'model') return await createModelServer(source);
  if (source !== SOURCE) return await connectRealServer(source, database);
  return await connectHeldServer(source, database, fault);
}
