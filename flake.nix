{
  description = "One small native binary between an app and any coding agent";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      date = self.lastModifiedDate or "19700101";
      day = builtins.concatStringsSep "-" [
        (builtins.substring 0 4 date)
        (builtins.substring 4 2 date)
        (builtins.substring 6 2 date)
      ];
      package =
        pkgs:
        pkgs.rustPlatform.buildRustPackage {
          pname = "acpipe";
          version = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildType = "dist";
          # The tests start shells and agents that the sandbox does not have; CI runs them.
          doCheck = false;
          env.ACPIPE_COMMIT = "${self.shortRev or self.dirtyShortRev or "unknown"} ${day}";
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            installShellCompletion --cmd acpipe \
              --bash <($out/bin/acpipe completions bash) \
              --zsh <($out/bin/acpipe completions zsh) \
              --fish <($out/bin/acpipe completions fish)
            $out/bin/acpipe man --dir man
            installManPage man/*.1
          '';
          meta = {
            description = "One small native binary between an app and any coding agent";
            license = pkgs.lib.licenses.mit;
            mainProgram = "acpipe";
            platforms = systems;
          };
        };
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = package nixpkgs.legacyPackages.${system};
      });
    };
}
