/**
 * For a lease and for what prolongs one: the commit does not wait for the disk, whatever durability the connection has. A crash of the server
 * may then take it back, and the events are due again before the lease would have ended. Nothing is lost and no effect is made twice: who had
 * them holds a token that the database does not know (`new_token` gives none twice), so that its settlement changes nothing. What a settlement
 * writes waits for the disk, and with it everything before it.
 */
export const unhurried = `PERFORM set_config('synchronous_commit', 'off', true);`;
