"""Pairs of statements, older and newer, on which rules were tuned: updates, and pairs that only look alike."""

from __future__ import annotations

__all__ = ["ALIKE", "UPDATES"]

UPDATES = tuple(
    tuple(line.split(" | "))
    for line in """
The staging cluster is wiped every Sunday. | The staging cluster is wiped every Wednesday.
My favourite text editor is Kakoune. | My favourite text editor is Helix.
We deploy on Tuesdays. | We deploy on Thursdays.
Backups run at 02:30. | Backups run at 04:00.
The weekly sync is at 10:00. | The weekly sync is at 11:30.
Our main branch is called master. | Our main branch is called trunk.
The office wifi password is Falter88. | The office wifi password is Kranich21.
My dentist is Dr. Wu. | My dentist is Dr. Kim.
Lena works at Contoso. | Lena works at Initech now.
Our CI runs on Jenkins. | Our CI runs on GitHub Actions now.
The rent is 840 euros. | The rent is 910 euros.
The rent is 840 euros. | The rent went up to 910 euros.
Paul lives in Turin. | Paul moved to Genoa.
Paul lives in Turin. | Paul lives in Genoa now.
We use Slack for team chat. | We switched from Slack to Mattermost for team chat.
The API rate limit is 100 requests per minute. | The API rate limit was raised to 250 requests per minute.
Mira's phone number is 0664 12345. | Mira's new phone number is 0664 98765.
The gym closes at 22:00. | The gym closes at 21:00.
The gym closes at 22:00. | The gym now closes at 21:00.
My locker code is 4417. | My locker code is 9032.
The release is planned for May 12. | The release is planned for June 2.
The release date is May 12. | The release was postponed to June 2.
Our landlord is Mr. Okafor. | Our landlord is now Mrs. Brandt.
I take 5 mg of lisinopril. | I take 10 mg of lisinopril.
I take 5 mg of lisinopril every morning. | I now take 10 mg of lisinopril every morning.
The cat eats dry food. | The cat eats wet food now.
The team standup happens at 9:15. | The team standup happens at 9:45.
Invoices are due within 14 days. | Invoices are due within 30 days.
Sessions expire after 30 minutes. | Sessions expire after 60 minutes.
The default timeout is 30 seconds. | The default timeout is 45 seconds.
The default branch of the website repository is develop. | The default branch of the website repository is main.
Our database is MySQL. | Our database is PostgreSQL.
We store logs for 30 days. | We store logs for 90 days.
Logs are kept for 30 days. | Logs are now kept for 90 days.
Tests are run with unittest. | Tests are now run with pytest.
We format code with yapf. | We format code with black now.
We format code with yapf. | We no longer format code with yapf, we use ruff.
The project is written in Python 3.9. | The project is written in Python 3.12.
The minimum supported Python version is 3.9. | The minimum supported Python version is 3.11.
I drink my coffee with sugar. | I drink my coffee without sugar now.
I am a vegetarian. | I am not a vegetarian any more.
I prefer dark mode. | I prefer light mode now.
My desk is on the second floor. | My desk is on the fourth floor now.
My desk is on the second floor. | My desk is on the fourth floor.
The printer is in room 214. | The printer is in room 118.
The printer is in room 214. | The printer was moved to room 118.
Garbage is collected on Mondays. | Garbage is collected on Thursdays.
Piano lessons are on Wednesday at 4 pm. | Piano lessons are on Wednesday at 5 pm.
Piano lessons are on Wednesday. | Piano lessons have moved to Friday.
The car insurance is with Allianz. | The car insurance is with HUK now.
My bank is Sparkasse. | I switched my bank to ING.
The Wi-Fi network is called Otter. | The Wi-Fi network is called Badger.
The production server is db1.example.com. | The production server is db7.example.com.
The staging URL is https://stage.example.org. | The staging URL is https://staging.example.net.
API key of the weather service: k-11aa | API key of the weather service: k-77zz
budget: 5,000 euros | budget: 7,500 euros
Timezone: Europe/Berlin | Timezone: Europe/Lisbon
editor = vim | editor = emacs
The budget for the offsite is 5,000 euros. | The budget for the offsite is 6,500 euros.
Marta is the team lead. | Jonas is the team lead.
Marta is the team lead of platform. | Jonas is now the team lead of platform.
The on-call engineer this week is Sam. | The on-call engineer this week is Rita.
Jan reports to Wiebke. | Jan reports to Henrik.
My manager is Sonja. | My manager is Tarek.
Oskar is 7 years old. | Oskar is 8 years old.
Our cat is called Minka. | Our cat is called Luna.
My shirt size is M. | My shirt size is L.
The alarm goes off at 6:30. | The alarm goes off at 7:00.
I get up at 6. | I get up at 7.
The bus to work leaves at 7:42. | The bus to work leaves at 7:51.
Flight LH123 departs at 9:10. | Flight LH123 departs at 10:25.
The bakery opens at 6. | The bakery opens at 7.
The museum is closed on Mondays. | The museum is closed on Tuesdays.
The museum is closed on Mondays. | The museum is open on Mondays.
The feature flag new_ui is enabled. | The feature flag new_ui is disabled.
The door is locked at night. | The door is unlocked at night.
Dark mode is on by default. | Dark mode is off by default.
The build is green. | The build is red.
The cabin has no internet. | The cabin has internet now.
We ship on Fridays. | We do not ship on Fridays any more.
Use tabs for indentation. | Use spaces for indentation.
Always use tabs in this repository. | Always use spaces in this repository.
Commit messages are written in German. | Commit messages are written in English.
Please answer in German. | Please answer in English from now on.
The maximum upload size is 10 MB. | The maximum upload size is 25 MB.
Elena's employer is Bosch. | Elena's employer is Siemens.
Elena is married to Tom. | Elena is divorced from Tom.
Ravi studies physics. | Ravi studies chemistry now.
Ravi drives a Golf. | Ravi drives a Polo now.
The meeting room is Amber. | The meeting room is Cobalt.
Our retro takes place in room Amber. | Our retro takes place in room Cobalt.
The retro lasts 45 minutes. | The retro lasts 60 minutes.
The subscription costs $12 a month. | The subscription costs $15 a month.
The subscription costs $12 a month. | The price of the subscription rose to $15 a month.
We have 14 employees. | We have 17 employees.
Our company has 40 employees. | Our company has 52 employees now.
My weight is 82 kg. | My weight is 79 kg.
Redis listens on port 6379. | Redis listens on port 6380.
The backend is deployed to Fly.io. | The backend is deployed to Hetzner now.
Die Müllabfuhr kommt am Montag. | Die Müllabfuhr kommt am Donnerstag.
Der Chor probt dienstags. | Der Chor probt mittwochs.
Das Backup läuft um 3 Uhr. | Das Backup läuft um 5 Uhr.
Meine Lieblingsfarbe ist Blau. | Meine Lieblingsfarbe ist Grün.
Der Code für die Garage lautet 1188. | Der Code für die Garage lautet 7734.
Wir nutzen Jira für Tickets. | Wir nutzen jetzt Linear für Tickets.
Tante Helga wohnt in Kassel. | Tante Helga ist nach Erfurt gezogen.
Die Miete beträgt 700 Euro. | Die Miete beträgt 760 Euro.
Die Kita schließt um 16 Uhr. | Die Kita schließt jetzt um 15 Uhr.
Unser Hausarzt ist Dr. Lenz. | Unser Hausarzt ist jetzt Dr. Brock.
Das Treffen ist am Freitag. | Das Treffen wurde auf Montag verschoben.
Die Sitzung findet in Raum 12 statt. | Die Sitzung findet in Raum 7 statt.
La réunion a lieu le lundi. | La réunion a lieu le jeudi.
Claire travaille chez Renault. | Claire travaille maintenant chez Valeo.
Mon éditeur préféré est Vim. | Mon éditeur préféré est Emacs.
Le magasin ouvre à 9h. | Le magasin ouvre à 10h.
Le mot de passe du wifi est soleil12. | Le mot de passe du wifi est lune34.
Mi color favorito es el azul. | Mi color favorito es el verde.
La copia de seguridad se hace los lunes. | La copia de seguridad se hace los viernes.
Lucía vive en Granada. | Lucía vive ahora en Cádiz.
El alquiler es de 600 euros. | El alquiler es de 650 euros.
Il mio editor preferito è Vim. | Il mio editor preferito è Nano.
De vergadering is op maandag. | De vergadering is op woensdag.
Nora's flat is on the 3rd floor. | Nora's flat is on the 5th floor.
The pharmacy on Elm Street closes at 18:00. | The pharmacy on Elm Street closes at 19:00.
My gym membership costs 29 euros. | My gym membership costs 34 euros.
We hold planning on Monday mornings. | We hold planning on Wednesday mornings.
Our sprint length is two weeks. | Our sprint length is three weeks.
Sprints last two weeks. | Sprints last three weeks.
The conference is in Lisbon. | The conference was moved to Valencia.
Team lunch is at noon. | Team lunch is now at 12:30.
Pia's car is a Fiat. | Pia now drives a Honda.
Pia is single. | Pia is engaged.
The kids go to school at 8. | The kids go to school at 7:45.
Our coffee supplier is Beanworks. | Our coffee supplier is Roastery Nine now.
The release train leaves every second Tuesday. | The release train leaves every second Thursday.
I keep my passport in the desk. | I keep my passport in the safe.
The spare key is under the mat. | The spare key is in the mailbox.
The spare key is with Otto. | The spare key is with Greta.
Prod runs on AWS. | Prod moved from AWS to GCP.
The tests need Node 18. | The tests need Node 20.
The service requires Java 11. | The service requires Java 17 now.
Max is in grade 3. | Max is in grade 4.
Max plays goalkeeper. | Max plays striker now.
The plants need water twice a week. | The plants need water three times a week.
My doctor is Dr. Shah. | My new doctor is Dr. Ivers.
The standup link is https://meet.example/abc. | The standup link is https://meet.example/xyz.
The VPN host is vpn1.corp. | The VPN host is vpn2.corp.
My username on the forum is owlbear. | My username on the forum is owlbear77.
Nightly builds start at 1:00. | Nightly builds start at 3:00.
Payday is the 25th. | Payday is the 28th.
Payday is on the 25th of each month. | Payday is on the 28th of each month.
Rent is due on the 1st. | Rent is due on the 3rd.
Lea's shoe size is 36. | Lea's shoe size is 37.
The password for the NAS is tulip9. | The password for the NAS has been changed to rose7.
Our accountant is Ms. Novak. | Our accountant is Mr. Weiss.
Ken manages the warehouse. | Olu manages the warehouse now.
Tickets are tracked in Jira. | Tickets are tracked in Linear.
We track tickets in Jira. | We track tickets in Linear now.
The docs are hosted on Read the Docs. | The docs are now hosted on Netlify.
Support hours are 9 to 5. | Support hours are 8 to 6.
The shop is open from 9 to 17. | The shop is open from 10 to 18.
Zara is vegetarian. | Zara is vegan.
Zara is vegetarian. | Zara eats meat again.
Zara doesn't drink coffee. | Zara drinks coffee now.
I use a Mac at work. | I use a Linux laptop at work now.
My laptop has 16 GB of RAM. | My laptop has 32 GB of RAM.
The limit for expenses is 50 euros. | The limit for expenses was raised from 50 to 80 euros.
The retention period is 6 months. | The retention period is 12 months.
The retry count is 3. | The retry count is 5.
MAX_RETRIES = 3 | MAX_RETRIES = 5
log level: info | log level: debug
Default language: English | Default language: German
Unit tests run on every commit. | Unit tests run on every merge.
The newsletter goes out on Fridays. | The newsletter goes out on Mondays.
The newsletter is sent on Fridays at 10. | The newsletter is sent on Mondays at 10.
Our mascot is an otter. | Our mascot is a heron.
My bike is in the cellar. | My bike is at the repair shop.
The boiler was serviced in 2023. | The boiler was serviced in 2025.
The dog weighs 12 kg. | The dog weighs 14 kg.
Dad's blood pressure pill is 5 mg. | Dad's blood pressure pill is 10 mg.
Grandpa takes his pills in the morning. | Grandpa takes his pills in the evening.
The tenants on the second floor are the Meiers. | The tenants on the second floor are the Nowaks.
Kolja arbeitet bei Bosch. | Kolja arbeitet jetzt bei Zeiss.
Kolja hat montags frei. | Kolja hat freitags frei.
Der Mülltonnencode ist 5512. | Der Mülltonnencode ist 8831.
Mein Lieblingsverein ist Werder. | Mein Lieblingsverein ist Union.
Die Praxis öffnet um 8 Uhr. | Die Praxis öffnet um 9 Uhr.
Der Hausmeister heißt Kruse. | Der Hausmeister heißt Lorenz.
Unser Server steht in Frankfurt. | Unser Server steht jetzt in Nürnberg.
Wir treffen uns donnerstags. | Wir treffen uns dienstags.
Die Kursgebühr beträgt 40 Euro. | Die Kursgebühr beträgt 45 Euro.
Das Meeting ist um 14 Uhr. | Das Meeting ist um 15 Uhr.
Der Schlüssel liegt im Schrank. | Der Schlüssel liegt im Büro.
Mon médecin est le docteur Petit. | Mon médecin est le docteur Roux.
Le train part à 7h10. | Le train part à 7h25.
Paul habite à Lille. | Paul a déménagé à Metz.
Le cours de yoga est le mardi. | Le cours de yoga est le jeudi.
Mi médico es el doctor Sanz. | Mi médico es el doctor Rey.
La reunión es a las 10. | La reunión es a las 11.
El gimnasio cierra a las 22. | El gimnasio cierra a las 21.
Vivo en Málaga. | Ahora vivo en Bilbao.
Il negozio apre alle 9. | Il negozio apre alle 10.
""".strip().splitlines()
)
"""The newer statement takes the place of the older one, or a person has to look at both."""

ALIKE = tuple(
    tuple(line.split(" | "))
    for line in """
The build is stable. | The build is unstable.
API_TOKEN: xyzABC | API_TOKEN: xyzabc
The password of the vault is Sommer. | The password of the vault is sommer.
Jon lives in Leeds. | John lives in Leeds.
Jon's birthday is on 3 May. | John's birthday is on 9 May.
Marc's phone number is 555 1234. | Marco's phone number is 555 9876.
Eva works at Bosch. | Eve works at Siemens.
Stefan's manager is Ulla. | Stefanie's manager is Petra.
The disk usage on node1 is 70 percent. | The disk usage on node2 is 90 percent.
We use PostgreSQL 14 on staging. | We use PostgreSQL 16 on production.
The timeout on the proxy is 30 seconds. | The timeout on the server is 60 seconds.
The sofa is green. | The sofa is in the cellar.
My bicycle is blue. | My bicycle is in the shed.
Karl's address is 12 Mill Road. | Karl's address is karl@example.org.
Nina's contact is 0171 2345. | Nina's contact is nina@example.org.
Fred moved to Riga in 2019. | Fred moved to Oslo in 2014.
Fred bought a house in 2019. | Fred bought a house in 2008.
Ines lives in Porto. | Ines lives in Portugal.
Omar lives in France. | Omar lives in Lyon.
Our office is in Munich. | Our office is in Bavaria.
My sister lives in Bonn. | My sister lives in Kiel.
My brother is called Tim. | My brother is called Max.
My son goes to the Goethe school. | My daughter goes to the Schiller school.
Ana's e-mail is ana@work.example. | Ana's e-mail is ana@home.example.
Anna likes tea. | Anna likes chocolate.
Anna speaks French. | Anna speaks Polish.
Anna is allergic to nuts. | Anna is allergic to cats.
Anna has a dog. | Anna has a cat.
The blue team meets on Monday. | The red team meets on Friday.
The kitchen lamp is broken. | The bathroom lamp is fixed.
Backups of the wiki run at 02:00. | Backups of the shop run at 03:00.
Invoice 1001 was paid on 3 May. | Invoice 1002 was paid on 7 May.
Room 12 is on the second floor. | Room 31 is on the third floor.
Server alpha has 16 GB of memory. | Server beta has 32 GB of memory.
The port of the mail server is 25. | The port of the web server is 443.
I met Carla on Monday. | I met Carla on Friday.
We had pizza on Monday. | We had pasta on Tuesday.
The bakery is open on Saturday until noon. | The bakery is open on Sunday until ten.
Trains to Graz leave at 8:10. | Trains to Linz leave at 8:40.
Tom reports to Eva. | Eva reports to Tom.
The bus goes from Ulm to Kempten. | The bus goes from Kempten to Ulm.
Use tabs in Makefiles. | Use spaces in Python files.
The deadline for the draft is 3 June. | The deadline for the final version is 24 June.
The first draft is due on 3 June. | The second draft is due on 10 June.
The price for students is 5 euros. | The price for adults is 9 euros.
The yearly plan costs 100 euros. | The monthly plan costs 10 euros.
The plan costs 10 euros a month. | The plan costs 100 euros a year.
Paula's work phone is 030 111. | Paula's private phone is 0171 222.
Paula's mother is Ingrid. | Paula's aunt is Ingrid.
The Leipzig office opens at 8. | The Dresden office opens at 9.
The car is a Volvo. | The car is 12 years old.
The car is 12 years old. | The car is dirty.
Lisa is a nurse. | Lisa is a mother of two.
Lisa plays the violin. | Lisa plays tennis.
Lisa works at the clinic. | Lisa works on Saturdays.
Lisa works in Basel. | Lisa works for Novartis.
Lisa is in Basel. | Lisa is in a meeting.
Berlin is the capital of Germany. | Berlin is the largest city of Germany.
The function parse() returns a tree. | The function render() returns a string.
parse_line returns None on errors. | parse_file returns None on errors.
HTTP 404 means not found. | HTTP 403 means forbidden.
Python 3.9 supports dict union. | Python 3.10 supports pattern matching.
Port 80 is open. | Port 22 is open.
Port 80 is open. | Port 22 is closed.
The north door is locked. | The south door is locked.
The oven in the flat is gas. | The oven in the cabin is electric.
Grandma was born in 1938. | Grandpa was born in 1935.
My mother lives in Kiel. | My father lives in Bonn.
The code of the front door is 1234. | The code of the garage is 4321.
The red key opens the shed. | The red key opens the garage.
Maria teaches maths. | Maria teaches physics.
The new printer is in room 4. | The new scanner is in room 6.
We deploy the API on Monday. | We deploy the website on Thursday.
Staging uses Redis. | Staging uses Kafka.
The service depends on Redis. | The service depends on Kafka.
The report is for Ulrike. | The report is from Ulrike.
Ben owes me 20 euros. | Ben owes Tom 20 euros.
Ben owes me 20 euros. | I owe Ben 20 euros.
The test is flaky on Windows. | The test is flaky on macOS.
The app crashes on Android. | The app crashes on iOS.
The flight to Rome takes 2 hours. | The flight to Oslo takes 3 hours.
Item 3 of the list is milk. | Item 4 of the list is bread.
Version 2.1 fixes the login bug. | Version 2.2 fixes the logout bug.
Chapter 3 is about loops. | Chapter 4 is about functions.
Exercise 5 was easy. | Exercise 6 was hard.
The temperature in Oslo was 4 degrees on 3 March. | The temperature in Oslo was 9 degrees on 9 April.
The fever was 38.5 on Monday. | The fever was 39.1 on Tuesday.
Sven's favourite film is Alien. | Sven's favourite book is Dune.
Sven's favourite colour is red. | Svea's favourite colour is blue.
The capital of Austria is Vienna. | The capital of Australia is Canberra.
The user is active. | The user is inactive.
The list is ordered. | The list is unordered.
The request was valid. | The request was invalid.
The patient is responsive. | The patient is non-responsive.
The contract is legal. | The contract is illegal.
The connection is secure. | The connection is insecure.
The cable is connected. | The cable is disconnected.
Der Router ist sicher. | Der Router ist unsicher.
Das Ergebnis ist gültig. | Das Ergebnis ist ungültig.
La clé est visible. | La clé est invisible.
La puerta es visible. | La puerta es invisible.
Jens wohnt in Kiel. | Jenny wohnt in Bonn.
Hanne arbeitet bei Bosch. | Hanna arbeitet bei Siemens.
Der Server Alpha läuft auf Port 80. | Der Server Beta läuft auf Port 81.
Das Rad ist rot. | Das Rad ist im Keller.
Meine Schwester heißt Lea. | Meine Schwester heißt Ida.
Klaus mag Käse. | Klaus mag Wein.
Klaus wohnt in Graz. | Klaus wohnt in Österreich.
Oma wohnt in Ulm. | Opa wohnt in Trier.
Der Zug nach Köln fährt um 9 Uhr. | Der Zug nach Bonn fährt um 10 Uhr.
Marie aime le thé. | Marie aime le café.
Le bureau de Lyon ouvre à 8h. | Le bureau de Nice ouvre à 9h.
Jean habite à Lyon. | Jeanne habite à Nantes.
Ma sœur habite à Lille. | Ma cousine habite à Brest.
El coche es rojo. | El coche está en el garaje.
Mi hermana vive en Vigo. | Mi hermano vive en Lugo.
Carlos habla inglés. | Carlos habla chino.
La tienda de Sevilla abre a las 9. | La tienda de Cádiz abre a las 10.
The old laptop has 8 GB of memory. | The new laptop has 32 GB of memory.
The upper shelf holds tools. | The lower shelf holds paint.
I parked on level 3. | I parked on level 5.
Yesterday I ran 5 km. | Today I ran 8 km.
Order 778 contains two lamps. | Order 779 contains three chairs.
The meeting with Bosch is on Monday. | The meeting with Siemens is on Friday.
The meeting on Monday is about budget. | The meeting on Friday is about hiring.
Kim's doctor for the eyes is Dr. Roth. | Kim's doctor for the teeth is Dr. Hahn.
Kim visited Japan. | Kim visited Chile.
Kim owns a flat in Ghent. | Kim owns a house in Ostend.
Kim has read Dune. | Kim has read Emma.
Kim wants a new bike. | Kim wants a new phone.
Kim can swim. | Kim can dance.
Kim trusts Ada. | Kim trusts Bea.
The library needs numpy. | The library needs scipy.
The script writes a log file. | The script writes a report.
The recipe needs two eggs. | The recipe needs 200 g of flour.
Salt is in the left drawer. | Pepper is in the left drawer.
The passport is in the safe. | The passport expires in 2031.
The lease ends in March. | The lease began in April.
The window faces north. | The window is double glazed.
cafe opens 8 | café closes 8
Zoë lives in Ghent. | Zoe-Marie lives in Ghent.
Ticket ABC-1 is fixed. | Ticket ABC-2 is fixed.
The key of the case is K7x. | The key of the case is k7X.
Tim's phone number is 111. | Tina's phone number is 222.
Anders lives in Oslo. | Andreas lives in Bergen.
Kate's manager is Lou. | Kathe's manager is Ned.
Lou lives in Bern. | Lou works in Basel.
The router in the hall has the IP 10.0.0.1. | The router in the attic has the IP 10.0.0.2.
Prod uses PostgreSQL 15. | Staging uses PostgreSQL 16.
The chair is wooden. | The chair is in the garden.
The chair is wooden. | The chair is comfortable.
Ida's contact is ida@example.org. | Ida's contact is +49 170 1234567.
Ida moved to Kiel in 2012. | Ida moved to Ulm in 2020.
Ida graduated in 2012. | Ida married in 2015.
Ida lives in Vienna. | Ida lives in Austria.
Ida lives in Vienna. | Ida lives in a shared flat.
My aunt lives in Riga. | My aunt lives in Tallinn.
My colleague is from Ghana. | My colleague is from Peru.
Ida's e-mail is ida@firm.example. | Ida's private e-mail is ida@home.example.
Ida has two sons. | Ida has one daughter.
Ida's son is Bo. | Ida's son is Jo.
Ida's hobby is sailing. | Ida's hobby is chess.
Ida reads Kafka. | Ida reads Camus.
Ida can play the piano. | Ida can play the flute.
Ida called on Monday. | Ida called on Thursday.
Ida paid 30 euros for the book. | Ida paid 12 euros for the pen.
The concert on Friday is sold out. | The concert on Saturday is sold out.
The train at 8:10 is full. | The train at 8:40 is empty.
The first floor is rented. | The second floor is vacant.
The left lane is closed. | The right lane is open.
The app is slow on Android. | The app is slow on iOS.
The bug occurs in Firefox. | The bug occurs in Safari.
The bug occurs on Windows 10. | The bug occurs on Windows 11.
Build 412 failed. | Build 413 failed.
Build 412 failed. | Build 413 passed.
PR 88 is merged. | PR 89 is open.
User ada has the role admin. | User bob has the role editor.
The admin password is Zebra1. | The guest password is Lion2.
SECRET_KEY: QWErty | SECRET_KEY: qweRTY
The pin of the blue card is 1111. | The pin of the red card is 2222.
GET /users returns a list. | GET /orders returns a list.
The users table has 12 columns. | The orders table has 7 columns.
Function foo takes two arguments. | Function bar takes three arguments.
The config file is in /etc. | The log file is in /var/log.
The config file is in /etc. | The config file is 2 kB.
Milk is in the fridge. | Bread is in the cupboard.
Buy milk. | Buy bread.
Call Anna on Monday. | Call Ben on Monday.
Remember to water the plants. | Remember to feed the cat.
The cake needs 3 eggs. | The cake needs 100 g of sugar.
The cake bakes at 180 degrees. | The cake bakes for 40 minutes.
The bread bakes at 220 degrees. | The cake bakes at 180 degrees.
Sam is taller than Kim. | Kim is taller than Sam.
Sam sold the boat to Kim. | Kim sold the boat to Sam.
Sam's mother is a teacher. | Sam's father is a teacher.
Sam's mother is a teacher. | Sam's mother is a singer.
The red wire is live. | The blue wire is neutral.
The experiment was successful. | The experiment was unsuccessful.
The node is healthy. | The node is unhealthy.
The option is required. | The option is not required for admins.
The endpoint is authenticated. | The endpoint is unauthenticated.
The data is complete. | The data is incomplete.
The migration is reversible. | The migration is irreversible.
The user interface is intuitive. | The user interface is blue.
The report for March is done. | The report for April is done.
The report for March is done. | The report for April is late.
In 2020 sales were 3 million. | In 2021 sales were 4 million.
Sales in Q1 were 3 million. | Sales in Q2 were 4 million.
The Paris office has 12 people. | The London office has 30 people.
The budget for travel is 4000. | The budget for books is 500.
Mia's room is green. | Mia's bed is green.
Mia's bed is green. | Mia's bed is new.
We use Terraform for infrastructure. | We use Ansible for configuration.
We use Terraform. | We also use Pulumi.
Use snake_case for functions. | Use CamelCase for classes.
Python uses indentation. | Go uses braces.
ISO 9001 is about quality. | ISO 27001 is about security.
The word is spelled colour in British English. | The word is spelled color in American English.
At home I speak Dutch. | At work I speak English.
On Mondays I swim. | On Tuesdays I run.
I swim on Mondays. | I run on Tuesdays.
In winter the park closes at 17:00. | In summer the park closes at 21:00.
The park closes at 17:00 in winter. | The park closes at 21:00 in summer.
The pool is open on weekdays from 8. | The pool is open on weekends from 10.
Lars ist Lehrer. | Lars ist Vater.
Lars wohnt in Hessen. | Lars wohnt in Kassel.
Lars hat einen Hund. | Lars hat ein Auto.
Lara hat am 3. Mai Geburtstag. | Lars hat am 9. Juni Geburtstag.
Der Kurs ist kostenlos. | Der Kurs ist am Montag.
Der Vertrag ist wirksam. | Der Vertrag ist unwirksam.
Mein Bruder wohnt in Mainz. | Mein Bruder wohnt in Hanau.
Die linke Tür ist offen. | Die rechte Tür ist zu.
Das Büro in Köln hat 5 Räume. | Das Büro in Bonn hat 3 Räume.
Léa aime le jazz. | Léo aime le rock.
Ma voiture est rouge. | Ma voiture est au garage.
Le chien s'appelle Rex. | Le chat s'appelle Mimi.
Ana vive en España. | Ana vive en Toledo.
Mi hijo se llama Leo. | Mi hijo se llama Teo.
La sala 3 está libre. | La sala 4 está ocupada.
Marco abita a Roma. | Marta abita a Pisa.
Jan woont in Gent. | Jana woont in Brugge.
""".strip().splitlines()
)
"""Both may hold: nothing may be lost, and few are worth a look."""
