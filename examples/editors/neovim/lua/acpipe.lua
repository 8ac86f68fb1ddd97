-- Prompts coding agents through `acpipe serve`, in a session of the current directory. Neovim 0.7 or newer, no plugins.
--   require('acpipe').setup({ args = { '--agent', 'claude' } })
--   :Acpipe explain this project      :AcpipeCancel      :AcpipeStop
local uv = vim.uv or vim.loop -- renamed in Neovim 0.10
local M = { program = 'acpipe', args = {} }

local client -- the running acpipe, or nil
local buffer -- shows the conversation
local turn_runs = false

-- Appends text to the buffer. Windows that show the buffer scroll to its end.
local function append(text)
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    buffer = vim.api.nvim_create_buf(true, true)
    vim.api.nvim_buf_set_option(buffer, 'filetype', 'markdown')
  end
  local last = vim.api.nvim_buf_line_count(buffer) - 1
  local column = #vim.api.nvim_buf_get_lines(buffer, last, last + 1, true)[1]
  vim.api.nvim_buf_set_text(buffer, last, column, last, column, vim.split(text, '\n', { plain = true }))
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

local function send(message)
  message.jsonrpc = '2.0'
  local body = vim.json.encode(message)
  client.stdin:write(('Content-Length: %d\r\n\r\n%s'):format(#body, body))
end

-- Sends a request. Exactly one of the callbacks runs when its response arrives, or when acpipe exits.
local function call(method, params, on_result, on_error)
  client.last_id = client.last_id + 1
  client.calls[client.last_id] = { on_result = on_result or function() end, on_error = on_error }
  send({ id = client.last_id, method = method, params = params })
end

-- Asks the user the next open permission request. One at a time: a second vim.ui.select can replace the first.
local function ask()
  local running, question = client, client.questions[1]
  if client.asking or not question then return end
  client.asking = true
  local tool = question.params.toolCall
  local prompt = (tool.title or tool.toolName) .. (question.params.command and ' [' .. question.params.command .. ']' or '')
  vim.ui.select(question.params.options, {
    prompt = prompt:gsub('%s+', ' ') .. ': ',
    format_item = function(option) return option.name end,
  }, function(option)
    if client ~= running then return end -- acpipe was stopped
    client.asking = false
    if client.questions[1] == question then -- else acpipe withdrew it
      table.remove(client.questions, 1)
      local outcome = option and { outcome = 'selected', optionId = option.optionId } or { outcome = 'cancelled' }
      send({ id = question.id, result = { outcome = outcome } })
    end
    ask()
  end)
end

local function handle(message)
  local method, params = message.method, message.params
  if method == 'permission/request' then
    table.insert(client.questions, { id = message.id, params = params })
    ask()
  elseif method == '$/cancelRequest' then -- the request needs no response any more
    client.questions = vim.tbl_filter(function(question) return question.id ~= params.id end, client.questions)
  elseif method == 'session/chunk' then
    append(params.chunk.type == 'text-delta' and params.chunk.delta or params.chunk.type == 'text-end' and '\n' or '')
  elseif not method then
    local waiting = client.calls[message.id]
    client.calls[message.id] = nil
    if message.error then waiting.on_error(message.error.message) else waiting.on_result(message.result) end
  end
end

local function warn(failure, text)
  vim.notify(('cannot use output of acpipe: %s: %q'):format(failure, text:sub(1, 200)), vim.log.levels.WARN)
end

-- Handles the messages in what acpipe wrote. The end of `client.rest` may be a part of a message.
local function receive(data)
  client.rest = client.rest .. data
  while client do -- a handler can stop acpipe
    local _, head, length = client.rest:find('^Content%-Length: (%d+)\r\n\r\n')
    if length then
      if #client.rest < head + length then return end
      local body, rest = client.rest:sub(head + 1, head + length), client.rest:sub(head + length + 1)
      client.rest = rest
      local ok, failure = pcall(function() handle(vim.json.decode(body, { luanil = { object = true } })) end)
      if not ok then warn(failure, body) end
    else
      local line, rest = client.rest:match('^([^\n]*)\n(.*)$')
      if not line or line:find('^Content%-Length: ') then return end
      client.rest = rest
      warn('not a message', line) -- such as a line of a wrapper
    end
  end
end

-- Closes stdin of acpipe, which then cancels its turns, stops the agent and exits.
function M.stop(reason)
  local stopped = client
  if not stopped then return end
  client = nil
  stopped.stdin:close()
  for _, waiting in pairs(stopped.calls) do waiting.on_error(reason) end
end

function M.start()
  local stdin, stdout = uv.new_pipe(false), uv.new_pipe(false)
  local started = { stdin = stdin, rest = '', calls = {}, last_id = 0, questions = {} }
  local args = vim.list_extend({ 'serve', '--permissions', 'ask' }, M.args)
  -- detached: in a process group of its own, Ctrl-C in the terminal does not reach acpipe. Its log (stderr) is dropped.
  started.process, started.pid = uv.spawn(M.program, { args = args, stdio = { stdin, stdout, nil }, detached = true },
    vim.schedule_wrap(function(code)
      started.process:close()
      stdout:close()
      if client == started then M.stop('acpipe has exited with code ' .. code) end
      if M.on_exit then M.on_exit(code) end
    end))
  if not started.process then error(('cannot start %s: %s'):format(M.program, started.pid), 0) end
  client = started
  stdout:read_start(vim.schedule_wrap(function(_, data)
    if data and client == started then receive(data) end
  end))
  -- acpipe handles these in order: no call needs to wait for the response to another one.
  local hello = { protocolVersion = 1, processId = uv.os_getpid(), capabilities = { permissions = true } }
  call('initialize', hello, nil, M.stop)
  call('agent/connect', vim.empty_dict(), nil, M.stop)
  call('session/ensure', { cwd = vim.fn.getcwd() }, nil, M.stop)
end

-- Runs a turn. `done` (optional) runs at its end, with the reason if the turn did not end normally.
function M.prompt(text, done)
  if not client then M.start() end
  if turn_runs then error('a turn is running; :AcpipeCancel cancels it', 0) end
  turn_runs = true
  local function finish(failure)
    turn_runs = false
    if failure then append('\n[' .. failure .. ']\n') end
    if done then done(failure) end
  end
  append('\n> ' .. text:gsub('\n', '\n> ') .. '\n\n')
  if #vim.fn.win_findbuf(buffer) == 0 then vim.cmd('botright sbuffer ' .. buffer) end
  call('session/prompt', { message = text }, function(summary)
    local failure = summary.isError and summary.errors[1].message
    finish(failure or (summary.stopReason ~= 'end_turn' and summary.stopReason) or nil)
  end, finish)
end

-- Cancels the running turn, which then ends with the stop reason `cancelled`.
function M.cancel() if client then call('session/cancel', vim.empty_dict(), nil, vim.notify) end end

function M.setup(options)
  for name, value in pairs(options or {}) do M[name] = value end
  vim.api.nvim_create_user_command('Acpipe', function(command) M.prompt(command.args) end, { nargs = '+' })
  vim.api.nvim_create_user_command('AcpipeCancel', M.cancel, {})
  vim.api.nvim_create_user_command('AcpipeStop', function() M.stop('acpipe was stopped') end, {})
end

return M
