-- Tests of lua/acpipe.lua against the scripted agent of ../agent.json; ../check.sh starts them in `nvim --headless`.
local acpipe = require('acpipe')
local LIMIT = 20000 -- milliseconds

local function check(condition, text)
  if not condition then error(text .. '\n' .. debug.traceback(), 0) end
end

local function wait_for(condition, text)
  check(vim.wait(LIMIT, condition, 5), 'timed out: ' .. text)
end

local function shown()
  return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_get_current_buf(), 0, -1, true), '\n')
end

local function contains(text)
  check(shown():find(text, 1, true), ('the buffer does not contain %q:\n%s'):format(text, shown()))
end

-- The answers of the client to permission requests, from the tape that acpipe writes.
local function answers()
  local outcomes = {}
  for line in io.lines(os.getenv('TAPE')) do
    local record = vim.json.decode(line)
    if record.side == 'client' and record.dir == 'in' and record.frame.result then
      table.insert(outcomes, record.frame.result.outcome)
    end
  end
  return outcomes
end

-- Runs a turn to its end and returns the failure that it ends with.
local function run(prompt)
  local ended, failure = false, nil
  acpipe.prompt(prompt, function(reason) ended, failure = true, reason end)
  wait_for(function() return ended end, 'the end of ' .. prompt)
  return failure
end

local exit_code
acpipe.setup({
  args = { '--record', os.getenv('TAPE'), '--', os.getenv('FAKE_AGENT'), os.getenv('AGENT_SCRIPT') },
  on_exit = function(code) exit_code = code end,
})

local tests = {}

function tests.text_streams_into_the_buffer_and_questions_are_asked_one_after_the_other()
  local prompts, open = {}, 0
  vim.ui.select = function(options, ui, on_choice)
    open = open + 1
    check(open == 1, 'two questions are open at once')
    check(ui.format_item(options[1]) == 'Allow', 'the first option is not Allow')
    table.insert(prompts, ui.prompt)
    local function answer() -- later, as plugins that show a window do
      -- While the first question is open, the second one arrives.
      if #prompts == 1 and not shown():find('asked twice', 1, true) then return vim.schedule(answer) end
      open = open - 1
      on_choice(options[#prompts == 1 and 2 or 1])
    end
    vim.schedule(answer)
  end
  local failure = run('hello\nthere')
  check(failure == nil, 'the turn ended with ' .. tostring(failure))
  local lines = { '> hello\n> there\n\nHello, wörld 🙂\nsecond line' }
  for i = 0, 999 do table.insert(lines, 'line ' .. i) end -- more than one read of stdout can hold
  contains(table.concat(lines, '\n') .. '\n')
  check(vim.deep_equal(prompts, { 'Run cargo test [cargo test]: ', 'Edit main.rs: ', 'Read main.rs: ' }), vim.inspect(prompts))
end

function tests.a_cancelled_turn_withdraws_its_question()
  local answer
  vim.ui.select = function(options, _, on_choice)
    answer = function() on_choice(options[1]) end
    vim.cmd('AcpipeCancel')
  end
  check(run('delete it') == 'cancelled', shown())
  contains('working\n')
  contains('\n[cancelled]\n')
  answer() -- too late: the test of the answers finds none
end

function tests.an_error_of_the_agent_is_shown()
  vim.ui.select = function() error('no question was expected') end
  local failure = run('what now?')
  check(failure and failure:find('the model is down', 1, true), tostring(failure))
  contains('[' .. failure .. ']')
end

function tests.a_second_prompt_is_refused_while_a_turn_runs()
  local ended = false
  acpipe.prompt('one', function() ended = true end)
  local ok, message = pcall(vim.cmd, 'Acpipe two')
  check(not ok and message:find('a turn is running', 1, true), tostring(message))
  wait_for(function() return ended end, 'the end of the first prompt')
end

function tests.acpipe_exits_when_it_is_stopped()
  vim.cmd('AcpipeStop')
  wait_for(function() return exit_code end, 'the exit of acpipe')
  check(exit_code == 0, 'exit code ' .. exit_code)
end

function tests.each_question_got_one_answer_and_a_withdrawn_one_got_none()
  local no, yes = { outcome = 'selected', optionId = 'no' }, { outcome = 'selected', optionId = 'yes' }
  check(vim.deep_equal(answers(), { no, yes, yes }), vim.inspect(answers()))
end

function tests.a_start_that_fails_is_shown_once()
  acpipe.args = { '--record', os.getenv('TAPE'), '--', '/nonexistent/agent' }
  local failure = run('hello')
  check(failure and failure:find('/nonexistent/agent', 1, true), tostring(failure))
  local _, count = shown():gsub(vim.pesc(failure), '')
  check(count == 1, count .. ' messages')
  acpipe.program = '/nonexistent/acpipe'
  local ok, message = pcall(acpipe.prompt, 'hello')
  check(not ok and message:find('cannot start /nonexistent/acpipe', 1, true), tostring(message))
end

function tests.output_that_is_not_a_message_is_skipped()
  local wrapper = os.getenv('TAPE') .. '.sh'
  local file = assert(io.open(wrapper, 'w'))
  file:write([[#!/bin/sh
send() { printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1"; }
echo 'Now using node v20.20.2'
send null
send '{"jsonrpc":"2.0","method":"session/chunk"}'
send '{"id":99,"result":null}'
exec acpipe "$@"
]])
  file:close()
  vim.fn.setfperm(wrapper, 'rwx------')
  local notes, notify = {}, vim.notify
  vim.notify = function(text) table.insert(notes, text) end
  exit_code = nil
  acpipe.program, acpipe.args = wrapper, { '--persist', 'never', '--agent', 'demo' }
  local failure = run('hello')
  check(failure == nil, tostring(failure))
  vim.notify = notify
  check(#notes == 4, vim.inspect(notes))
  check(notes[1]:find('Now using node', 1, true), notes[1])
  vim.cmd('AcpipeStop')
  wait_for(function() return exit_code end, 'the exit of acpipe')
end

-- The tests share one session, so that their order matters.
for _, name in ipairs({
  'text_streams_into_the_buffer_and_questions_are_asked_one_after_the_other',
  'a_cancelled_turn_withdraws_its_question',
  'an_error_of_the_agent_is_shown',
  'a_second_prompt_is_refused_while_a_turn_runs',
  'acpipe_exits_when_it_is_stopped',
  'each_question_got_one_answer_and_a_withdrawn_one_got_none',
  'a_start_that_fails_is_shown_once',
  'output_that_is_not_a_message_is_skipped',
}) do
  local ok, message = xpcall(tests[name], function(e) return tostring(e) end)
  io.stdout:write((ok and 'ok   ' or 'FAIL '), name, ok and '' or '\n' .. message, '\n')
  if not ok then vim.cmd('cquit 1') end
end
vim.cmd('quitall!')
