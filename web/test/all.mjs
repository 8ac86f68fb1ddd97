// All tests, in one process: they share a browser and a server. `npm test` runs this file.
//
//   UPDATE_IMAGES=1 npm test        writes docs/images/page again
//   node test/turns.test.mjs        one file

import './build.test.mjs';
import './text.test.mjs';
import './tools.test.mjs';
import './hostile.test.mjs';
import './injection.test.mjs';
import './dialogs.test.mjs';
import './turns.test.mjs';
import './layout.test.mjs';
import './keyboard.test.mjs';
import './connection.test.mjs';
