/**
 * The function that returns a header of an event. PostgreSQL refuses to read some escapes in JSON, so U+E000
 * and U+E001 replace them, as in `header-text.ts`.
 */
export const headers = `
CREATE FUNCTION header_of(extras text, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT replace(replace(extras, '\\\\', chr(57344)), '\\u', chr(57345))::json -> 'headers' ->> name
$$;
`;
