/**
 * A function that returns a header of an event. PostgreSQL refuses to read JSON with some escapes, even if another
 * value is wanted. So the function replaces an escaped backslash by U+E000, and the start of a `\u` escape by U+E001.
 * `header-text.ts` does the same.
 */
export const headers = `
CREATE FUNCTION header_of(extras text, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT replace(replace(extras, '\\\\', chr(57344)), '\\u', chr(57345))::json -> 'headers' ->> name
$$;
`;
