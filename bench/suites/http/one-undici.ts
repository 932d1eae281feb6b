import { install } from 'undici';

/** All clients on one and the same undici: Node's own is another version. Imported before those that look at the globals. */
install();
