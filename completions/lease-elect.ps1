
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'lease-elect' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'lease-elect'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'lease-elect' {
            [CompletionResult]::new('--lease-duration', '--lease-duration', [CompletionResultType]::ParameterName, 'Time until another process leads after a crash')
            [CompletionResult]::new('--missed-renewals', '--missed-renewals', [CompletionResultType]::ParameterName, 'Number of renewals in a row that may fail before leadership is lost')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'Time between TERM and KILL if leadership is lost')
            [CompletionResult]::new('--holder', '--holder', [CompletionResultType]::ParameterName, 'Identity of this process, unique in the election [default: HOST_PID_RANDOM]')
            [CompletionResult]::new('--status-address', '--status-address', [CompletionResultType]::ParameterName, 'Serve /healthz, /readyz, /readyz?leader and /metrics on IP:PORT or :PORT')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file to use, instead of $KUBECONFIG or ~/.kube/config')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Kubeconfig context to use, instead of the current context')
            [CompletionResult]::new('--cluster', '--cluster', [CompletionResultType]::ParameterName, 'Kubeconfig cluster to use, instead of the one of the context')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'Kubeconfig user to use, instead of the one of the context')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace to use, instead of the one of the context or, in a pod, of the pod')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace to use, instead of the one of the context or, in a pod, of the pod')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Address and port of the API server')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Address and port of the API server')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to impersonate: a regular user or system:serviceaccount:NAMESPACE:NAME')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to impersonate; repeat the flag for multiple groups')
            [CompletionResult]::new('--as-uid', '--as-uid', [CompletionResultType]::ParameterName, 'UID to impersonate')
            [CompletionResult]::new('--as-user-extra', '--as-user-extra', [CompletionResultType]::ParameterName, 'Extra attribute of the impersonated user; repeat the flag for multiple values')
            [CompletionResult]::new('--certificate-authority', '--certificate-authority', [CompletionResultType]::ParameterName, 'File with the CA certificates to check the API server''s certificate with')
            [CompletionResult]::new('--client-certificate', '--client-certificate', [CompletionResultType]::ParameterName, 'File with the client certificate to authenticate with')
            [CompletionResult]::new('--client-key', '--client-key', [CompletionResultType]::ParameterName, 'File with the private key of the client certificate')
            [CompletionResult]::new('--insecure-skip-tls-verify', '--insecure-skip-tls-verify', [CompletionResultType]::ParameterName, 'Do not check the API server''s certificate. This makes the connection insecure')
            [CompletionResult]::new('--tls-server-name', '--tls-server-name', [CompletionResultType]::ParameterName, 'Server name to check the API server''s certificate with, instead of its host name')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'Time limit of a single request (e.g. 10, 10s, 1m); 0 means no limit')
            [CompletionResult]::new('--disable-compression', '--disable-compression', [CompletionResultType]::ParameterName, 'Do not let the API server compress its responses')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Log level for requests: 6 (URL, status, time), 7 (headers), 8 (bodies)')
            [CompletionResult]::new('--v', '--v', [CompletionResultType]::ParameterName, 'Log level for requests: 6 (URL, status, time), 7 (headers), 8 (bodies)')
            [CompletionResult]::new('--token', '--token', [CompletionResultType]::ParameterName, 'Bearer token to authenticate with')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
