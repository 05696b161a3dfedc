
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
            [CompletionResult]::new('--lease-duration', '--lease-duration', [CompletionResultType]::ParameterName, 'For how long each renewal holds: how soon another leads after a crash')
            [CompletionResult]::new('--missed-renewals', '--missed-renewals', [CompletionResultType]::ParameterName, 'How many renewals in a row may fail before the lead is given up')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'How long DAEMON and what it started have between TERM and KILL')
            [CompletionResult]::new('--holder', '--holder', [CompletionResultType]::ParameterName, 'Identity to lead with, instead of HOST_PROCESS_RANDOM: no two processes may have the same')
            [CompletionResult]::new('--status-address', '--status-address', [CompletionResultType]::ParameterName, 'Serve /healthz, /readyz, /readyz?leader and /metrics there, such as 127.0.0.1:8080 or :8080')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'Kubeconfig file to use, instead of the files named in KUBECONFIG or ~/.kube/config')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Kubeconfig context to use, instead of the current one')
            [CompletionResult]::new('--cluster', '--cluster', [CompletionResultType]::ParameterName, 'Kubeconfig cluster to talk to, instead of the context''s')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'Kubeconfig user to be, instead of the context''s')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Namespace to work in, instead of the context''s or, in a cluster, the pod''s own')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'Namespace to work in, instead of the context''s or, in a cluster, the pod''s own')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Address and port of the API server')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'Address and port of the API server')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'User to act as: an ordinary user, or a service account (system:serviceaccount:NAMESPACE:NAME)')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'Group to act as a member of; repeat it for several')
            [CompletionResult]::new('--as-uid', '--as-uid', [CompletionResultType]::ParameterName, 'UID to act as')
            [CompletionResult]::new('--as-user-extra', '--as-user-extra', [CompletionResultType]::ParameterName, 'Extra attribute of the user to act as; repeat it for several values or keys')
            [CompletionResult]::new('--certificate-authority', '--certificate-authority', [CompletionResultType]::ParameterName, 'File with the certificates of the authorities that may vouch for the API server')
            [CompletionResult]::new('--client-certificate', '--client-certificate', [CompletionResultType]::ParameterName, 'File with the client certificate to authenticate with')
            [CompletionResult]::new('--client-key', '--client-key', [CompletionResultType]::ParameterName, 'File with the key of the client certificate')
            [CompletionResult]::new('--insecure-skip-tls-verify', '--insecure-skip-tls-verify', [CompletionResultType]::ParameterName, 'Do not check the API server''s certificate: anybody in between can then read and change everything')
            [CompletionResult]::new('--tls-server-name', '--tls-server-name', [CompletionResultType]::ParameterName, 'Name that the API server''s certificate must carry, where it is not the one in its address')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'Longest time that a single request may take, such as 10s, 1m or 10 (seconds); 0 is without limit')
            [CompletionResult]::new('--disable-compression', '--disable-compression', [CompletionResultType]::ParameterName, 'Do not ask the API server to compress its answers')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'How much to tell about requests: 6 their URL, status and time, 7 headers too, 8 bodies too')
            [CompletionResult]::new('--v', '--v', [CompletionResultType]::ParameterName, 'How much to tell about requests: 6 their URL, status and time, 7 headers too, 8 bodies too')
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
