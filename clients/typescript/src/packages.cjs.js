exports.resolve = require.resolve;
