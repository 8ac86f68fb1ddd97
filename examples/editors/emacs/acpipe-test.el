;;; acpipe-test.el --- Tests of acpipe.el against a scripted agent  -*- lexical-binding: t; -*-

;;; Commentary:

;; ../check.sh runs these in `emacs --batch'.  They share one session, so that their order, by name, matters.

;;; Code:

(require 'acpipe)
(require 'ert)

(defvar acpipe-test--command
  (list "acpipe" "serve" "--permissions" "ask" "--record" (getenv "TAPE") "--" (getenv "FAKE_AGENT") (getenv "AGENT_SCRIPT")))

(setq acpipe-command acpipe-test--command)

(defun acpipe-test--wait (condition)
  "Wait at most 20 seconds until CONDITION returns non-nil; return that."
  (let ((deadline (+ (float-time) 20)) value)
    (while (not (setq value (funcall condition)))
      (should (< (float-time) deadline))
      (accept-process-output nil 0.05))
    value))

(defun acpipe-test--run (prompt)
  "Send PROMPT, wait for the end of the turn and return the failure that it ends with."
  (let ((outcome 'none))
    (acpipe-prompt prompt (lambda (failure) (setq outcome failure)))
    (acpipe-test--wait (lambda () (not (eq outcome 'none))))
    outcome))

(defun acpipe-test--shown ()
  "Return the text of the conversation."
  (with-current-buffer (acpipe--buffer) (buffer-string)))

(defun acpipe-test--answers ()
  "Return the answers of the client to permission requests, from the tape that acpipe writes."
  (with-temp-buffer
    (insert-file-contents (getenv "TAPE"))
    (cl-loop until (eobp)
             for record = (json-parse-buffer :object-type 'plist)
             for result = (plist-get (plist-get record :frame) :result)
             when (and result (equal (plist-get record :side) "client") (equal (plist-get record :dir) "in"))
             collect (plist-get result :outcome)
             do (skip-chars-forward "\n"))))

(ert-deftest acpipe-test-1-streams-text-and-asks-one-question-after-the-other ()
  (let ((prompts nil) (open nil))
    (cl-letf (((symbol-function 'completing-read)
               (lambda (prompt options &rest _)
                 (should-not open)
                 (setq open t)
                 (push prompt prompts)
                 ;; While the first question is open, the second one arrives.
                 (unless (cdr prompts) (acpipe-test--wait (lambda () (string-search "asked twice" (acpipe-test--shown)))))
                 (setq open nil)
                 (car (nth (if (cdr prompts) 0 1) options)))))
      (should-not (acpipe-test--run "hello\nthere")))
    (should (equal (reverse prompts) '("Run cargo test [cargo test]: " "Edit main.rs: " "Read main.rs: ")))
    (let ((lines (cl-loop for i below 1000 concat (format "line %d\n" i))))
      (should (string-search (concat "> hello\n> there\n\nHello, wörld 🙂\nsecond line\n" lines) (acpipe-test--shown))))))

(ert-deftest acpipe-test-2-a-cancelled-turn-withdraws-its-question ()
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_ options &rest _)
               (acpipe-cancel)
               (acpipe-test--wait (lambda () (not acpipe--turns)))
               (caar options))))        ; too late: test 6 finds no answer
    (should (equal (acpipe-test--run "delete it") "cancelled")))
  (should (string-search "working\n\n[cancelled]\n" (acpipe-test--shown))))

(ert-deftest acpipe-test-3-shows-an-error-of-the-agent ()
  (let ((failure (acpipe-test--run "what now?")))
    (should (string-search "the model is down" failure))
    (should (string-search (format "\n[%s]\n" failure) (acpipe-test--shown)))))

(ert-deftest acpipe-test-4-refuses-a-second-prompt-while-a-turn-runs ()
  (let (ended)
    (acpipe-prompt "one" (lambda (_) (setq ended t)))
    (should-error (acpipe-prompt "two") :type 'user-error)
    (acpipe-test--wait (lambda () ended))))

(ert-deftest acpipe-test-5-another-directory-has-a-session-of-its-own ()
  (let ((default-directory temporary-file-directory))
    (should (acpipe-test--run "elsewhere"))
    (should (string-search "> elsewhere" (acpipe-test--shown))))
  (should-not (string-search "> elsewhere" (acpipe-test--shown)))
  (should (= (length (delete-dups (mapcar #'car acpipe--sessions))) 2)))

(ert-deftest acpipe-test-6-stops-acpipe-and-has-answered-each-open-question-once ()
  (let ((process (jsonrpc--process acpipe--connection)))
    (acpipe-stop)
    (acpipe-test--wait (lambda () (not (process-live-p process))))
    (should (= (process-exit-status process) 0)))
  (should (equal (acpipe-test--answers)
                 (mapcar (lambda (option) `(:outcome "selected" :optionId ,option)) '("no" "yes" "yes")))))

(ert-deftest acpipe-test-7-shows-why-an-agent-does-not-start ()
  (let ((acpipe-command '("acpipe" "serve" "--" "/nonexistent/agent")))
    (should (string-search "/nonexistent/agent" (acpipe-test--run "hello")))
    (acpipe-stop)
    (acpipe-test--wait (lambda () (not (jsonrpc-running-p acpipe--connection)))))
  (let ((acpipe-command '("/nonexistent/acpipe")))
    (should-error (acpipe-prompt "hello") :type 'user-error)
    (should-not acpipe--turns)))

(provide 'acpipe-test)
;;; acpipe-test.el ends here
