// Imported before everything else: the AI SDK checks chunks with zod, which builds functions from text unless it is
// configured before the first schema. The server's policy forbids that.

import { config } from 'zod/v4';

config({ jitless: true });
