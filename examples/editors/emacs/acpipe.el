;;; acpipe.el --- Prompt coding agents through acpipe  -*- lexical-binding: t; -*-

;; One `acpipe serve' runs for all conversations.  Each directory has a session and a buffer.
;;
;;   M-x acpipe-prompt    send a prompt to the session of the current directory
;;   M-x acpipe-cancel    cancel the turn that runs in the current conversation
;;   M-x acpipe-stop      stop acpipe and its agents

(require 'cl-lib)
(require 'jsonrpc)

(defvar acpipe-command '("acpipe" "serve" "--permissions" "ask") "Command line of acpipe.")
(defvar acpipe--connection nil "Connection to the running acpipe, or nil.")
(defvar acpipe--sessions nil "Open sessions, as (ID . BUFFER).")
(defvar acpipe--turns nil "Buffers of the conversations in which a turn runs.")
(defvar acpipe--questions nil "Permission requests without an answer, as (ID . PARAMS), the oldest first.")
(defvar acpipe--asking nil "Non-nil while a permission request is shown.")

(defclass acpipe-connection (jsonrpc-process-connection) ()
  "Connection on which a request can be answered after its dispatcher has returned.")

(cl-defmethod jsonrpc-connection-send ((connection acpipe-connection) &rest args &key id result &allow-other-keys)
  "Send a message; but if RESULT is a function, call it with the ID of the request that it is to answer.
Without this, the dispatcher would have to read the user's answer before jsonrpc can receive the next message."
  (if (functionp result) (funcall result id) (apply #'cl-call-next-method connection args)))

(defun acpipe--insert (buffer text)
  "Insert TEXT at the end of BUFFER; windows in which point is at the end follow it."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let ((following (cl-remove-if-not (lambda (window) (= (window-point window) (point-max)))
                                         (get-buffer-window-list buffer nil t))))
        (save-excursion (goto-char (point-max)) (insert text))
        (dolist (window following) (set-window-point window (point-max)))))))

(defun acpipe--call (method params on-result on-error)
  "Send a request: METHOD with PARAMS.
Call ON-RESULT with its result, or ON-ERROR with the message of its error."
  ;; No timeout: a turn takes as long as it takes, and acpipe has limits of its own.
  (jsonrpc-async-request acpipe--connection method params :timeout nil :success-fn on-result
                         :error-fn (lambda (failure) (funcall on-error (plist-get failure :message)))))

(defun acpipe--ask ()
  "Show the open permission requests one after the other and send the answers."
  (unless acpipe--asking
    (let ((acpipe--asking t) (enable-recursive-minibuffers t))
      (while acpipe--questions
        (let* ((connection acpipe--connection)
               (question (car acpipe--questions))
               (params (cdr question))
               (tool (plist-get params :toolCall)) (command (plist-get params :command))
               (options (mapcar (lambda (option) (cons (plist-get option :name) (plist-get option :optionId)))
                                (plist-get params :options)))
               (what (or (plist-get tool :title) (plist-get tool :toolName)))
               (prompt (concat what (if command (format " [%s]: " command) ": ")))
               (name (condition-case nil (completing-read prompt options nil t) (quit nil)))
               (option (cdr (assoc name options))))
          (when (memq question acpipe--questions) ; else acpipe withdrew the request, or was stopped
            (setq acpipe--questions (delq question acpipe--questions))
            (jsonrpc-connection-send
             connection :id (car question)
             :result `(:outcome ,(if option `(:outcome "selected" :optionId ,option) '(:outcome "cancelled"))))))))))

(defun acpipe--request (_connection method params)
  "Handle the request METHOD of acpipe with PARAMS."
  (unless (eq method 'permission/request) (jsonrpc-error :code -32601 :message "Method not found"))
  (lambda (id)
    (setq acpipe--questions (append acpipe--questions (list (cons id params))))
    (run-at-time 0 nil #'acpipe--ask)))

(defun acpipe--notification (_connection method params)
  "Handle the notification METHOD of acpipe with PARAMS."
  (pcase method
    ('session/chunk
     (let ((buffer (cdr (assoc (plist-get params :sessionId) acpipe--sessions)))
           (chunk (plist-get params :chunk)))
       (pcase (plist-get chunk :type)
         ("text-delta" (acpipe--insert buffer (plist-get chunk :delta)))
         ("text-end" (acpipe--insert buffer "\n")))))
    ('$/cancelRequest                   ; the request needs no answer any more
     (setq acpipe--questions (cl-remove (plist-get params :id) acpipe--questions :key #'car :test #'equal)))))

(defun acpipe--start ()
  "Start acpipe and its default agent, unless acpipe runs."
  (unless (and acpipe--connection (jsonrpc-running-p acpipe--connection))
    (unless (executable-find (car acpipe-command)) (user-error "Cannot find %s" (car acpipe-command)))
    (setq acpipe--sessions nil
          acpipe--questions nil
          acpipe--connection
          (apply
           #'make-instance 'acpipe-connection
           :name "acpipe" :request-dispatcher #'acpipe--request :notification-dispatcher #'acpipe--notification
           :process (lambda ()          ; jsonrpc expects this name of the buffer for stderr
                      (make-process :name "acpipe" :command acpipe-command :connection-type 'pipe :noquery t
                                    :coding 'utf-8-emacs-unix :stderr (get-buffer-create "*acpipe stderr*")))
           ;; No buffer of all messages: it would grow with every chunk.
           (if (< emacs-major-version 30) '(:events-buffer-scrollback-size 0) '(:events-buffer-config (:size 0)))))
    (acpipe--call 'initialize `(:protocolVersion 1 :processId ,(emacs-pid) :capabilities (:permissions t)) #'ignore #'message)
    (acpipe--call 'agent/connect (make-hash-table) #'ignore #'message)))

(defun acpipe--buffer ()
  "Return the buffer of the conversation in the current directory."
  (get-buffer-create (format "*acpipe: %s*" (abbreviate-file-name (expand-file-name default-directory)))))

(defun acpipe--with-session (buffer on-open on-error)
  "Open the session of BUFFER if necessary.  Call ON-OPEN with its id, or ON-ERROR with an error message."
  (let ((open (rassq buffer acpipe--sessions)))
    (if open (funcall on-open (car open))
      (acpipe--call 'session/ensure `(:cwd ,(with-current-buffer buffer (expand-file-name default-directory)))
                    (lambda (session)
                      (push (cons (plist-get session :sessionId) buffer) acpipe--sessions)
                      (funcall on-open (plist-get session :sessionId)))
                    on-error))))

(defun acpipe-prompt (text &optional done)
  "Send the prompt TEXT to the session of the current directory.
At the end of the turn, call DONE with nil, or with the reason why the turn did not end normally."
  (interactive "sPrompt: ")
  (acpipe--start)
  (let* ((buffer (acpipe--buffer))
         (end (lambda (failure)
                (setq acpipe--turns (delq buffer acpipe--turns))
                (when failure (acpipe--insert buffer (format "\n[%s]\n" failure)))
                (when done (funcall done failure))))
         (ended (lambda (summary)
                  (let ((errors (plist-get summary :errors)) (reason (plist-get summary :stopReason)))
                    (funcall end (cond ((cl-plusp (length errors)) (plist-get (aref errors 0) :message))
                                       ((not (equal reason "end_turn")) reason)))))))
    (when (memq buffer acpipe--turns) (user-error "A turn is running; M-x acpipe-cancel cancels it"))
    (push buffer acpipe--turns)
    (display-buffer buffer)
    (acpipe--insert buffer (format "\n> %s\n\n" (string-replace "\n" "\n> " text)))
    (acpipe--with-session
     buffer (lambda (id) (acpipe--call 'session/prompt `(:sessionId ,id :message ,text) ended end)) end)))

(defun acpipe-cancel ()
  "Cancel the turn that runs in the current directory."
  (interactive)
  (let ((session (rassq (acpipe--buffer) acpipe--sessions)))
    (when session (acpipe--call 'session/cancel `(:sessionId ,(car session)) #'ignore #'message))))

(defun acpipe-stop ()
  "Stop acpipe and wait until its agents have exited."
  (interactive)
  (when (and acpipe--connection (jsonrpc-running-p acpipe--connection))
    (jsonrpc-request acpipe--connection 'shutdown (make-hash-table))))

(provide 'acpipe)
;;; acpipe.el ends here
