import { assemblyColumns, assemblyTables, PARKED } from './journal-rows.ts';
import type { Store } from './store.ts';

export function journalStatements(store: Store) {
  return {
    program: store.prepare(`
      INSERT INTO holdfast_program (name, version) VALUES (?1, ?2)
      ON CONFLICT DO UPDATE SET version = ?2 RETURNING id`),
    add: store.prepare(`
      INSERT OR IGNORE INTO holdfast_assembly
        (id, program, state, input, queue, key, tenant, settings, accepted_at, expires_at, keep_ms, acts)
      VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    known: store.prepare(`
      SELECT program.name, assembly.input FROM holdfast_assembly assembly
      JOIN holdfast_program program ON program.id = assembly.program WHERE assembly.id = ?`),
    find: store.prepare(`
      SELECT assembly.seq, program, state, assembly.queue, assembly.key, revision, is_committed,
        stop IS NOT NULL AS is_stopping, lease.seq IS NOT NULL AS is_leased
      FROM holdfast_assembly assembly LEFT JOIN holdfast_assembly_lease lease ON lease.seq = assembly.seq
      WHERE assembly.id = ?`),
    held: store.prepareRows(`
      SELECT assembly.seq, program, state, assembly.queue, assembly.key, revision, lease.deaths, 1,
        stop IS NOT NULL, is_committed
      FROM holdfast_assembly_lease lease JOIN holdfast_assembly assembly ON assembly.seq = lease.seq
      WHERE lease.seq = ? AND lease.token = ?`),
    putStep: store.prepare(
      'INSERT OR REPLACE INTO holdfast_assembly_step VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    clearDeaths: store.prepare('UPDATE holdfast_assembly_lease SET deaths = 0 WHERE seq = ?'),
    commit: store.prepare('UPDATE holdfast_assembly SET is_committed = 1 WHERE seq = ?'),
    stop: store.prepare('UPDATE holdfast_assembly SET stop = coalesce(stop, ?) WHERE seq = ?'),
    end: store.prepare(`
      UPDATE holdfast_assembly SET state = ?1, result = coalesce(?2, result), parked = NULL, ended_at = ?3,
        removed_at = ?3 + keep_ms WHERE seq = ?4`),
    reopen: store.prepare(
      'UPDATE holdfast_assembly SET state = 0, parked = NULL, ended_at = NULL, removed_at = NULL WHERE seq = ?',
    ),
    park: store.prepare('UPDATE holdfast_assembly SET state = 1, parked = ? WHERE seq = ?'),
    revise: store.prepare('UPDATE holdfast_assembly SET revision = revision + 1 WHERE seq = ?'),
    setExpiry: store.prepare('UPDATE holdfast_assembly SET expires_at = ? WHERE seq = ?'),
    addSignal: store.prepare(`
      INSERT OR IGNORE INTO holdfast_assembly_signal
      SELECT ?1, 1 + coalesce((SELECT max(number) FROM holdfast_assembly_signal WHERE seq = ?1), 0), ?2, ?3, ?4, ?5`),
    byId: store.prepare(`SELECT ${assemblyColumns} FROM ${assemblyTables} WHERE assembly.id = ?`),
    bySeq: store.prepare(`SELECT ${assemblyColumns} FROM ${assemblyTables} WHERE assembly.seq = ?`),
    steps: store.prepare('SELECT * FROM holdfast_assembly_step WHERE seq = ? ORDER BY step_order'),
    stepsAfter: store.prepare(`
      SELECT * FROM holdfast_assembly_step WHERE seq = ? AND step_order > ? ORDER BY step_order LIMIT ? + 0`),
    forget: store.prepare('DELETE FROM holdfast_assembly_step WHERE seq = ? AND path = ?'),
    step: store.prepare('SELECT * FROM holdfast_assembly_step WHERE seq = ? AND path = ?'),
    lastOrder: store.prepare('SELECT max(step_order) AS last FROM holdfast_assembly_step WHERE seq = ?'),
    signals: store.prepare(
      'SELECT * FROM holdfast_assembly_signal WHERE seq = ? AND number > ? ORDER BY number',
    ),
    leasedBy: store.prepare(`
      SELECT assembly.id, revision FROM holdfast_assembly_lease lease
      JOIN holdfast_assembly assembly ON assembly.seq = lease.seq WHERE lease.worker = ?`),
    update: store.prepare(`
      UPDATE holdfast_assembly SET program = ?, input = coalesce(?, input), settings = coalesce(?, settings),
        acts = json_insert(coalesce(acts, '[]'), '$[#]', json(?)) WHERE seq = ?`),
    nameOf: store.prepare('SELECT name, version FROM holdfast_program WHERE id = ?'),
    copySteps: store.prepare(`
      INSERT INTO holdfast_assembly_step SELECT ?1, path, step_order, kind, state, attempts, at, due_at, result, rest
      FROM holdfast_assembly_step
      WHERE seq = ?2 AND state IN ('done', 'failed') AND path IN (SELECT value FROM json_each(?3))`),
    copySignals: store.prepare(`
      INSERT INTO holdfast_assembly_signal SELECT ?1, number, id, name, payload, at
      FROM holdfast_assembly_signal WHERE seq = ?2`),
    counts: store.prepare(`
      SELECT program.name, program.version, state, lease.seq IS NOT NULL AS is_leased, count(*) AS count
      FROM holdfast_assembly assembly JOIN holdfast_program program ON program.id = assembly.program
      LEFT JOIN holdfast_assembly_lease lease ON lease.seq = assembly.seq GROUP BY 1, 2, 3, 4 ORDER BY 1, 2`),
    // With `max(assembly.seq)`, SQLite takes `id` and `message` from the row with the largest seq.
    parkedGroups: store.prepare(`
      SELECT program.name, parked ->> '$.because' AS because, parked ->> '$.error.fingerprint' AS fingerprint,
        count(*) AS count, max(assembly.seq) AS seq, assembly.id, parked ->> '$.message' AS message
      FROM holdfast_assembly assembly JOIN holdfast_program program ON program.id = assembly.program
      WHERE state = ${PARKED} AND NOT EXISTS (SELECT 1 FROM holdfast_assembly_lease lease WHERE lease.seq = assembly.seq)
      GROUP BY 1, 2, 3 ORDER BY count(*) DESC, max(assembly.seq) LIMIT ? + 0`),
    expired: store.prepare('SELECT seq FROM holdfast_assembly WHERE removed_at <= ? LIMIT ? + 0'),
    remove: ['', '_step', '_signal'].map((table) =>
      store.prepare(`DELETE FROM holdfast_assembly${table} WHERE seq = ?`),
    ),
  };
}
